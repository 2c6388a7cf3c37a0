//! The listener's certificate, and the authorities by which other replicas are known.

use std::time::Duration;

use crate::doctor::{
    check::Check,
    facts::{ListenerCertificate, TlsFacts},
    finding::Finding,
};

/// How long before its end a certificate is worth a warning: whoever renews it every day or week has failed by then.
const ENDS_WITHIN: Duration = Duration::from_secs(14 * 24 * 60 * 60);
const PLAIN: &str = "the listener speaks plain HTTP";

pub(super) fn judge(facts: &TlsFacts) -> [Finding; 4] {
    let own = match &facts.listener {
        Some(listener) => [files(listener), validity(listener, facts), names(listener)],
        None => [plain(facts), Finding::ok(Check::TlsValidity, PLAIN), Finding::ok(Check::TlsNames, PLAIN)],
    };
    let [files, validity, names] = own;
    [files, validity, names, authorities(facts)]
}

fn plain(facts: &TlsFacts) -> Finding {
    let check = Check::TlsFiles;
    match &facts.in_clear {
        Some(said) => Finding::warn(
            check,
            said,
            "give it a certificate (`tls.cert_file`, `tls.key_file`), unless a mesh or what stands before it encrypts",
        ),
        None => Finding::ok(check, PLAIN),
    }
}

fn files(listener: &ListenerCertificate) -> Finding {
    let check = Check::TlsFiles;
    listener.pair.judged(check, |_| {
        let (cert, key) = (listener.cert_file.display(), listener.key_file.display());
        Finding::ok(check, format!("{cert} and {key} go together"))
    })
}

fn validity(listener: &ListenerCertificate, facts: &TlsFacts) -> Finding {
    let check = Check::TlsValidity;
    let Some(pair) = listener.pair.known() else { return Finding::skipped(check, "tls.files failed") };
    let (from, until, now) = (pair.not_before, pair.not_after, facts.now);
    let renew = "renew it: nobody who looks at certificates reaches a replica without a valid one";
    if now < from {
        Finding::fail(check, format!("it is valid from {from} on, and this machine has {now}"), renew)
    } else if until < now {
        Finding::fail(check, format!("it was valid until {until}"), renew)
    } else if until < now.plus(ENDS_WITHIN) {
        let next = "see why it is not renewed; a replica takes a new one up without a restart";
        Finding::warn(check, format!("it is valid until {until}, for less than two weeks"), next)
    } else {
        Finding::ok(check, format!("it is valid until {until}"))
    }
}

fn names(listener: &ListenerCertificate) -> Finding {
    let check = Check::TlsNames;
    let Some(pair) = listener.pair.known() else { return Finding::skipped(check, "tls.files failed") };
    match &listener.host {
        None => Finding::skipped(check, "by which host others reach this replica is not said (`endpoint`)"),
        Some(host) if pair.covers => Finding::ok(check, format!("it is one for {host}")),
        Some(host) => Finding::fail(
            check,
            format!(
                "it is not one for {host}, by which others reach this replica: they will send it nothing"
            ),
            format!(
                "have one made with {host} among its names (subjectAltName), or set `endpoint` to one of them"
            ),
        ),
    }
}

fn authorities(facts: &TlsFacts) -> Finding {
    let check = Check::PeersAuthorities;
    match &facts.authorities {
        None => {
            Finding::ok(check, "other replicas are known by this machine's authorities, where they speak TLS")
        }
        Some((path, read)) => read.judged(check, |()| {
            Finding::ok(check, format!("other replicas are known by the authorities in {}", path.display()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_types::Timestamp;

    use super::*;
    use crate::doctor::{
        fact::Fact,
        facts::CertificateFacts,
        finding::Verdict,
        judge::samples::{about, assert_says, certificate, failed, tls},
    };

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn finding(check: Check, pair: Fact<CertificateFacts>, now: Timestamp) -> Finding {
        let listener = tls().listener.map(|listener| ListenerCertificate { pair, ..listener });
        about(&judge(&TlsFacts { listener, now, ..tls() }), check).clone()
    }

    #[test]
    fn a_certificate_is_good_now_and_for_a_while() {
        let CertificateFacts { not_before, not_after, .. } = certificate();
        for (now, verdict, part) in [
            (not_before.minus(DAY), Verdict::Fail, "is valid from"),
            (not_before, Verdict::Ok, "is valid until"),
            (not_after.minus(15 * DAY), Verdict::Ok, "is valid until"),
            (not_after.minus(13 * DAY), Verdict::Warn, "less than two weeks"),
            (not_after.plus(DAY), Verdict::Fail, "was valid until"),
        ] {
            assert_says(&finding(Check::TlsValidity, Fact::Known(certificate()), now), verdict, part);
        }
    }

    #[test]
    fn it_is_one_for_the_host_by_which_others_come() {
        let now = tls().now;
        let other = CertificateFacts { covers: false, ..certificate() };
        let said = finding(Check::TlsNames, Fact::Known(other), now);
        assert_says(&said, Verdict::Fail, "a.example");
        assert!(said.next.unwrap().contains("subjectAltName"));
        let listener = tls().listener.map(|listener| ListenerCertificate { host: None, ..listener });
        let unknown = judge(&TlsFacts { listener, ..tls() });
        assert_says(about(&unknown, Check::TlsNames), Verdict::Skipped, "endpoint");
    }

    #[test]
    fn what_cannot_be_read_fails_once() {
        let now = tls().now;
        assert_says(&finding(Check::TlsFiles, failed(), now), Verdict::Fail, "it burns");
        for check in [Check::TlsValidity, Check::TlsNames] {
            assert_says(&finding(check, failed(), now), Verdict::Skipped, "tls.files failed");
        }
        let none = TlsFacts { authorities: Some(("/ca".into(), failed())), ..tls() };
        assert_says(about(&judge(&none), Check::PeersAuthorities), Verdict::Fail, "it burns");
    }

    #[test]
    fn plain_http_is_well_where_no_token_comes_from_elsewhere() {
        let plain = TlsFacts { listener: None, authorities: None, ..tls() };
        for finding in judge(&plain) {
            assert_eq!(finding.verdict, Verdict::Ok, "{finding:?}");
        }
        let open = TlsFacts { in_clear: Some("tokens in clear".into()), ..plain };
        assert_says(about(&judge(&open), Check::TlsFiles), Verdict::Warn, "tokens in clear");
    }
}
