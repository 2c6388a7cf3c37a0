//! The answer to every statement is lost in turn, after the server has executed it. What the repeated call answers, and what is in the
//! tables then, is what the contract says; the network's own record shows which statement that was.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use leasehold_lease::{
    Announcement, Claim, LeaseError, LeaseStore as _, NewToken, PostgresInspector, PostgresLeaseStore,
    PostgresOptions, Recheck, TlsMode, TokenAdded, TokenStore as _,
};
use leasehold_testkit::{Cue, Exchange, Fault, FaultProxy};
use leasehold_types::{ApiToken, Entropy, Epoch, Organizations, ReplicaId, Scopes, SystemClock};
use uuid::Uuid;

use super::{
    renewals::LONG,
    server::{Schema, Way, url},
};
use crate::stage::{TTL, key, tenure_id};

/// How a statement ends on its way to the server (Sync), and how the server says that all of it is done, in no transaction
/// (`ReadyForQuery`). <https://www.postgresql.org/docs/current/protocol-message-formats.html>
const SYNC: &[u8] = b"S\0\0\0\x04";
const READY: &[u8] = b"Z\0\0\0\x05I";

/// A call of the store, in the state of the tables in which it runs certain statements.
#[derive(Clone, Copy, Debug)]
enum Call {
    AcquireNew,
    AcquireReleased,
    AcquireExpired,
    AcquireHeld,
    AcquirePaused,
    AcquireToForget,
    Pause,
    PauseAgain,
    PauseUnknown,
    Resume,
    Renew,
    RenewRefused,
    Release,
    RaiseFloor,
    StoreReceipt,
    AdvanceEpoch,
    AdvanceRefused,
    Read,
    List,
    DueRechecks,
    ScheduleRecheck,
    AnnounceNew,
    AnnounceAgain,
    AnnounceTaken,
    Retire,
    Replicas,
    BindNew,
    BindKept,
    AddToken,
    AddTokenOfFullName,
    Tokens,
    RevokeToken,
    Connect,
}

/// What the contract says of a call.
struct Expected {
    call: Call,
    /// The statements that it runs, in this order.
    runs: &'static [&'static str],
    /// Which of them changes anything, if one does: the place in `runs`.
    changes: Option<usize>,
    /// The answer to the call.
    once: &'static str,
    /// The answer to a repetition of a call that was executed.
    again: &'static str,
}

const fn call(
    call: Call,
    runs: &'static [&'static str],
    changes: Option<usize>,
    once: &'static str,
    again: &'static str,
) -> Expected {
    Expected { call, runs, changes, once, again }
}

const TAKEN: &str = "Granted(Grant { epoch: 1, floor: 0 })";
const TAKEN_OVER: &str = "Granted(Grant { epoch: 2, floor: 0 })";

/// A repetition adopts what it had taken, and waits for nothing; what was handed back, put on or looked at is so once.
const CALLS: &[Expected] = &[
    call(Call::AcquireNew, &["acquire", "read", "insert"], Some(2), TAKEN, TAKEN),
    call(Call::AcquireReleased, &["acquire"], Some(0), TAKEN_OVER, TAKEN_OVER),
    call(Call::AcquireExpired, &["acquire"], Some(0), TAKEN_OVER, TAKEN_OVER),
    call(Call::AcquireHeld, &["acquire", "read"], None, "held by other at 1", "held by other at 1"),
    call(Call::AcquirePaused, &["acquire", "read"], None, "paused", "paused"),
    call(Call::AcquireToForget, &["acquire"], Some(0), TAKEN_OVER, TAKEN_OVER),
    call(Call::Pause, &["pause"], Some(0), "Some(true)", "Some(false)"),
    call(Call::PauseAgain, &["pause", "read"], None, "Some(false)", "Some(false)"),
    call(Call::PauseUnknown, &["pause", "read"], None, "None", "None"),
    call(Call::Resume, &["resume"], Some(0), "true", "false"),
    call(Call::Renew, &["renew"], Some(0), "[Granted]", "[Granted]"),
    call(Call::RenewRefused, &["renew"], None, "[Refused]", "[Refused]"),
    call(Call::Release, &["release"], Some(0), "true", "false"),
    call(Call::RaiseFloor, &["raise_floor"], Some(0), "Some(1)", "Some(1)"),
    call(Call::StoreReceipt, &["store_receipt"], Some(0), "true", "true"),
    call(Call::AdvanceEpoch, &["advance_epoch"], Some(0), "Some(8)", "None"),
    call(Call::AdvanceRefused, &["advance_epoch", "read"], None, "None", "None"),
    call(Call::Read, &["read"], None, "mine at 1", "mine at 1"),
    call(Call::List, &["list"], None, "1", "1"),
    call(Call::DueRechecks, &["due_rechecks"], None, "1", "1"),
    call(Call::ScheduleRecheck, &["schedule_recheck"], Some(0), "true", "false"),
    call(Call::AnnounceNew, &["announce", "heard_of", "introduce"], Some(2), "Accepted", "Accepted"),
    call(Call::AnnounceAgain, &["announce"], Some(0), "Accepted", "Accepted"),
    call(Call::AnnounceTaken, &["announce", "heard_of"], None, "taken", "taken"),
    call(Call::Retire, &["retire"], Some(0), "()", "()"),
    call(Call::Replicas, &["replicas"], None, "1", "1"),
    call(Call::BindNew, &["setting", "keep_setting", "setting"], Some(1), "f-1", "f-1"),
    call(Call::BindKept, &["setting"], None, "f-0", "f-0"),
    call(Call::AddToken, &["drop_ended_tokens", "add_token"], Some(1), "added", "added"),
    call(
        Call::AddTokenOfFullName,
        &["drop_ended_tokens", "add_token", "tokens"],
        None,
        "NameIsFull",
        "NameIsFull",
    ),
    call(Call::Tokens, &["tokens"], None, "1", "1"),
    call(Call::RevokeToken, &["revoke_token"], Some(0), "true", "false"),
    call(Call::Connect, &["has_history", "version"], None, "()", "()"),
];

fn replica(name: &str) -> ReplicaId {
    name.parse().unwrap()
}

fn claim(replica_name: &str) -> Claim {
    let (replica, epoch) = (replica(replica_name), Epoch::new(1).unwrap());
    Claim { key: key("acme/t"), replica, tenure: tenure_id(1), epoch }
}

fn announcement(instance: u128) -> Announcement {
    Announcement {
        replica: replica("mine"),
        instance: Uuid::from_u128(instance),
        endpoint: Some("http://127.0.0.1:1".into()),
        draining: false,
        open_tenants: 7,
    }
}

fn token(number: u64) -> NewToken {
    let token = ApiToken::mint(&Entropy::seeded(number));
    NewToken {
        id: token.id().clone(),
        hash: token.hash(),
        name: "crm".parse().unwrap(),
        organizations: Organizations::All,
        scopes: Scopes::ALL,
        good_for: LONG,
    }
}

/// Due, at the time that the table says.
async fn due(store: &PostgresLeaseStore) -> Recheck {
    store.due_rechecks(10).await.unwrap().pop().unwrap()
}

impl Call {
    /// Brings the tables to where the call is made, past the network that fails.
    async fn prepare(self, schema: &Schema, beside: &PostgresLeaseStore) {
        schema.run("TRUNCATE @.lease, @.replica, @.settings, @.token").await;
        let take = async |name: &str| {
            beside.acquire(&key("acme/t"), &replica(name), tenure_id(1), TTL).await.unwrap();
        };
        let announce = async |instance| {
            beside.announce(&announcement(instance), LONG, false).await.unwrap();
        };
        match self {
            Self::AcquireNew
            | Self::PauseUnknown
            | Self::AnnounceNew
            | Self::BindNew
            | Self::Connect
            | Self::AddToken => {}
            Self::Tokens | Self::RevokeToken => drop(beside.add_token(&token(1)).await.unwrap()),
            Self::AddTokenOfFullName => {
                for number in [2, 3] {
                    beside.add_token(&token(number)).await.unwrap();
                }
            }
            Self::AcquireReleased => {
                take("other").await;
                assert!(beside.release(&claim("other")).await.unwrap());
            }
            Self::AcquirePaused | Self::AcquireToForget | Self::PauseAgain | Self::Resume => {
                take("other").await;
                beside.pause(&key("acme/t")).await.unwrap();
                assert!(beside.release(&claim("other")).await.unwrap());
            }
            Self::AcquireExpired => {
                take("other").await;
                schema.advance(TTL).await;
            }
            Self::AcquireHeld | Self::RenewRefused | Self::AdvanceRefused => take("other").await,
            Self::Pause
            | Self::Renew
            | Self::Release
            | Self::RaiseFloor
            | Self::AdvanceEpoch
            | Self::Read
            | Self::List => {
                take("mine").await;
            }
            Self::StoreReceipt | Self::DueRechecks | Self::ScheduleRecheck => {
                take("mine").await;
                beside.raise_floor(&claim("mine"), Duration::ZERO).await.unwrap();
            }
            Self::AnnounceAgain | Self::Retire | Self::Replicas => announce(1).await,
            Self::AnnounceTaken => announce(2).await,
            Self::BindKept => drop(beside.bind_derivation_key("f-0").await.unwrap()),
        }
    }

    /// The answer, without what differs from one time to the next.
    async fn make(self, store: &PostgresLeaseStore, recheck: Option<&Recheck>) -> Result<String, LeaseError> {
        let (wanted, mine) = (key("acme/t"), claim("mine"));
        Ok(match self {
            Self::AcquireNew
            | Self::AcquireReleased
            | Self::AcquireExpired
            | Self::AcquireHeld
            | Self::AcquirePaused
            | Self::AcquireToForget => {
                let asked = match self {
                    Self::AcquireToForget => {
                        store.acquire_to_forget(&wanted, &mine.replica, tenure_id(2), TTL).await?
                    }
                    _ => store.acquire(&wanted, &mine.replica, tenure_id(2), TTL).await?,
                };
                match asked {
                    leasehold_lease::Acquisition::Granted(grant) => {
                        format!("Granted(Grant {{ epoch: {}, floor: {} }})", grant.epoch, grant.floor.get())
                    }
                    leasehold_lease::Acquisition::Held(holder) => {
                        format!("held by {} at {}", holder.replica, holder.epoch)
                    }
                    leasehold_lease::Acquisition::Paused { .. } => "paused".into(),
                }
            }
            Self::Pause | Self::PauseAgain | Self::PauseUnknown => {
                format!("{:?}", store.pause(&wanted).await?)
            }
            Self::Resume => store.resume(&wanted).await?.to_string(),
            Self::Renew | Self::RenewRefused => format!("{:?}", store.renew(&[mine], LONG).await?),
            Self::Release => store.release(&mine).await?.to_string(),
            Self::RaiseFloor => {
                let floor = store.raise_floor(&mine, TTL).await?;
                format!("{:?}", floor.map(leasehold_types::Floor::get))
            }
            Self::StoreReceipt => store.store_receipt(&mine, "{}").await?.to_string(),
            Self::AdvanceEpoch | Self::AdvanceRefused => {
                match store.advance_epoch(&mine, Epoch::new(7).unwrap()).await? {
                    Some(epoch) => format!("Some({epoch})"),
                    None => "None".into(),
                }
            }
            Self::Read => {
                let row = store.read(&wanted).await?.unwrap();
                format!("{} at {}", row.owner.unwrap().replica, row.epoch)
            }
            Self::List => store.list(&"acme".parse().unwrap(), None, 10).await?.len().to_string(),
            Self::DueRechecks => store.due_rechecks(10).await?.len().to_string(),
            Self::ScheduleRecheck => store.schedule_recheck(recheck.unwrap(), Some(LONG)).await?.to_string(),
            Self::AnnounceNew | Self::AnnounceAgain | Self::AnnounceTaken => {
                match store.announce(&announcement(1), LONG, false).await? {
                    leasehold_lease::Announced::Accepted => "Accepted".into(),
                    leasehold_lease::Announced::Taken { .. } => "taken".into(),
                }
            }
            Self::Retire => format!("{:?}", store.retire(&replica("mine"), Uuid::from_u128(1)).await?),
            Self::Replicas => store.replicas().await?.len().to_string(),
            Self::AddToken | Self::AddTokenOfFullName => match store.add_token(&token(1)).await? {
                TokenAdded::Added(_) => "added".into(),
                refused => format!("{refused:?}"),
            },
            Self::Tokens => store.tokens().await?.len().to_string(),
            Self::RevokeToken => store.revoke_token(&token(1).id).await?.to_string(),
            Self::BindNew | Self::BindKept => store.bind_derivation_key("f-1").await?,
            Self::Connect => unreachable!("it is made without a store"),
        })
    }
}

/// Everything in the tables; `exact`: with all times, else whether there is one.
async fn rows(schema: &Schema, exact: bool) -> String {
    let time = |column: &str| {
        if exact { format!("{column}::text") } else { format!("({column} IS NOT NULL)::text") }
    };
    let sql = format!(
        "SELECT coalesce(string_agg(line, ';' ORDER BY line), '') FROM (
             SELECT concat_ws('|', lease_key, epoch, owner, tenure_id, {}, forget_floor, {}, {}, receipt, {}) FROM @.lease
             UNION ALL SELECT concat_ws('|', replica_id, instance, endpoint, draining, open_tenants, {}) FROM @.replica
             UNION ALL SELECT concat_ws('|', name, value) FROM @.settings
             UNION ALL SELECT concat_ws('|', name, slot, token_id, hash, organizations, scopes) FROM @.token) AS all_rows (line)",
        time("expires_at"),
        time("forgotten_at"),
        time("recheck_at"),
        time("paused_at"),
        time("seen_at"),
    );
    schema.admin.query_one(&sql.replace('@', schema.name()), &[]).await.unwrap().get(0)
}

/// A network before the server, and options that lead through it.
async fn through_a_network(schema: &Schema, way: Way) -> (FaultProxy, PostgresOptions) {
    let url = url(way);
    let host = url.rsplit_once('@').unwrap().1.split('/').next().unwrap();
    let target: SocketAddr = host.parse().unwrap();
    let proxy = FaultProxy::start(target).await.unwrap();
    let mut options = PostgresOptions::new(url.replace(host, &proxy.addr().to_string()));
    options.schema = schema.name().into();
    (proxy, options)
}

/// The tags of the messages that a server's answer is made of, and the last byte of the last one.
fn tags(answer: &[u8]) -> (Vec<char>, Option<char>) {
    let (mut rest, mut tags) = (answer, Vec::new());
    while let [tag, a, b, c, d, ..] = rest {
        let len = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap();
        tags.push(char::from(*tag));
        assert!(rest.len() > len, "a whole message: {tags:?}");
        rest = &rest[len + 1..];
    }
    (tags, answer.last().map(|byte| char::from(*byte)))
}

/// Which statement an exchange was about. The server has executed it, without an error and outside any transaction.
fn executed<'a>(store: &'a PostgresLeaseStore, exchange: &Exchange) -> &'a str {
    let (tags, status) = tags(&exchange.answer);
    assert!(tags.contains(&'C') && !tags.contains(&'E'), "CommandComplete, and no error: {tags:?}");
    assert_eq!((tags.last(), status), (Some(&'Z'), Some('I')), "ReadyForQuery: {tags:?}");
    // A statement is sent as text, behind the empty name under which it is parsed.
    let is_sent = |text: &str| {
        let wanted = [b"\0", text.as_bytes(), b"\0"].concat();
        exchange.request.windows(wanted.len()).any(|window| window == wanted)
    };
    let found = store.statements().into_iter().find(|(_, text)| is_sent(text));
    found.expect("what is sent is one of the store's statements").0
}

async fn lose_every_answer(way: Way) {
    let mut lost_answers = BTreeSet::new();
    let schema = Schema::made(way).await;
    let beside = schema.store().await;
    for Expected { call, runs, changes, once, again } in CALLS {
        for place in 0..=runs.len() {
            call.prepare(&schema, &beside).await;
            let recheck = match call {
                Call::ScheduleRecheck => Some(due(&beside).await),
                _ => None,
            };
            let (proxy, options) = through_a_network(&schema, way).await;
            let connected = match call {
                Call::Connect => None,
                _ => Some(PostgresLeaseStore::connect(options.clone()).await.unwrap()),
            };
            let make = async || match &connected {
                Some(store) => call.make(store, recheck.as_ref()).await,
                None => PostgresLeaseStore::connect(options.clone()).await.map(|_| "()".into()),
            };
            let shown = format!("{call:?}, statement {place}");
            let before = rows(&schema, true).await;
            let lost = proxy.plan(Cue::request(SYNC).after(place).answer(READY), Fault::LoseAnswer);
            let answer = make().await;
            if place == runs.len() {
                // Behind the last one: nothing was left whose answer could be lost.
                assert_eq!(answer.as_deref().unwrap(), *once, "{shown}");
                assert!(!lost.is_met(), "{shown}");
                continue;
            }
            let error = answer.unwrap_err();
            assert!(error.is_transient(), "{shown}: {error:?}");
            let name = executed(&beside, &lost.exchange());
            assert_eq!(name, runs[place], "{shown}");
            lost_answers.insert(name);

            let has_changed = rows(&schema, true).await != before;
            assert_eq!(has_changed, changes.is_some_and(|change| change <= place), "{shown}");
            let repeated = make().await.unwrap();
            assert_eq!(repeated, if has_changed { *again } else { *once }, "{shown}");
            let left = rows(&schema, false).await;
            call.prepare(&schema, &beside).await;
            let undisturbed = match call {
                Call::ScheduleRecheck => call.make(&beside, Some(&due(&beside).await)).await.unwrap(),
                Call::Connect => (*once).to_owned(),
                _ => call.make(&beside, None).await.unwrap(),
            };
            assert_eq!((undisturbed.as_str(), rows(&schema, false).await), (*once, left), "{shown}");
        }
    }
    let statements = beside.statements().into_iter().map(|(name, _)| name);
    assert_eq!(lost_answers, statements.collect(), "a statement that no call in this list runs");
}

#[tokio::test]
async fn every_statement_whose_answer_is_lost_leaves_what_the_contract_says() {
    lose_every_answer(Way::Direct).await;
}

#[tokio::test]
async fn every_statement_whose_answer_is_lost_before_a_pooler_leaves_what_the_contract_says() {
    lose_every_answer(Way::Pooled).await;
}

/// The exchanges of a migration one after the other, those by which its connection is made among them, until there is none left.
async fn lose_every_answer_of_a_migration(way: Way) {
    let (mut exchanges, mut committed) = (0, 0);
    loop {
        let schema = Schema::unmade(way).await;
        let (proxy, options) = through_a_network(&schema, way).await;
        let lost = proxy.plan(Cue::request("").after(exchanges), Fault::LoseAnswer);
        let migrated = PostgresLeaseStore::migrate(&options).await;
        if !lost.is_met() {
            assert_eq!(migrated.unwrap().applied, ["V1__lease", "V2__pause", "V3__token"]);
            break;
        }
        let error = migrated.unwrap_err();
        assert!(error.is_transient(), "exchange {exchanges}: {error:?}");
        let repeated = PostgresLeaseStore::migrate(&options).await.unwrap();
        committed += usize::from(repeated.applied.is_empty());
        assert!(PostgresLeaseStore::migrate(&options).await.unwrap().applied.is_empty());
        schema.store().await;
        exchanges += 1;
    }
    assert!(exchanges >= 10, "only {exchanges} exchanges");
    assert_eq!(committed, 1, "one of them was the commit");
}

#[tokio::test]
async fn a_migration_whose_answer_is_lost_is_made_once() {
    lose_every_answer_of_a_migration(Way::Direct).await;
}

#[tokio::test]
async fn a_migration_whose_answer_is_lost_before_a_pooler_is_made_once() {
    lose_every_answer_of_a_migration(Way::Pooled).await;
}

/// Everything that is looked at before a database is trusted. What opens a connection and ends it again comes last.
async fn inspected(options: &PostgresOptions) -> Result<(), LeaseError> {
    let mut inspector = PostgresInspector::connect(options).await?;
    inspector.server().await?;
    inspector.tls().await?;
    inspector.schema().await?;
    inspector.round_trips(&SystemClock, 1).await?;
    inspector.commits(&SystemClock, 1, Uuid::from_u128(7)).await?;
    inspector.derivation_fingerprint().await?;
    inspector.pooling().await.map(drop)
}

/// The exchanges of an inspection one after the other, until there is none left: it is told, and nothing is left changed.
async fn lose_every_answer_of_an_inspection(way: Way) {
    let schema = Schema::made(way).await;
    schema.store().await.bind_derivation_key("f-0").await.unwrap();
    let before = rows(&schema, true).await;
    let mut exchanges = 0;
    loop {
        let (proxy, mut options) = through_a_network(&schema, way).await;
        options.tls_mode = Some(TlsMode::Disable);
        let lost = proxy.plan(Cue::request("").after(exchanges), Fault::LoseAnswer);
        let found = inspected(&options).await;
        assert_eq!(rows(&schema, true).await, before, "exchange {exchanges}");
        if !lost.is_met() {
            found.unwrap();
            break;
        }
        let error = found.unwrap_err();
        assert!(error.is_transient(), "exchange {exchanges}: {error:?}");
        exchanges += 1;
    }
    assert!(exchanges >= 15, "only {exchanges} exchanges");
}

#[tokio::test]
async fn an_inspection_whose_answer_is_lost_leaves_nothing_changed() {
    lose_every_answer_of_an_inspection(Way::Direct).await;
}

#[tokio::test]
async fn an_inspection_whose_answer_is_lost_before_a_pooler_leaves_nothing_changed() {
    lose_every_answer_of_an_inspection(Way::Pooled).await;
}
