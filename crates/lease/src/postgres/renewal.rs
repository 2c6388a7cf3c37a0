//! Many leases renewed by one statement.

use std::time::Duration;

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{connections::Lent, leases::act, rows, statements::Statements};
use crate::{Claim, LeaseError, Renewal};

/// The most claims that one statement renews (measured.md section 3).
const CHUNK_MAX: usize = 1_000;

/// What a batch asks the database: each claim once, in the order of the keys, so that two batches take rows' locks in one order; and
/// where the answer to each asked claim is found.
struct Batch<'a> {
    claims: Vec<&'a Claim>,
    /// For each of the caller's claims its place in `claims`.
    places: Vec<usize>,
}

impl<'a> Batch<'a> {
    fn of(asked: &'a [Claim]) -> Self {
        let mut order: Vec<usize> = (0..asked.len()).collect();
        let rank = |claim: &'a Claim| (&claim.key, &claim.replica, claim.tenure, claim.epoch);
        order.sort_by(|a, b| rank(&asked[*a]).cmp(&rank(&asked[*b])));
        let mut claims: Vec<&Claim> = Vec::with_capacity(asked.len());
        let mut places = vec![0; asked.len()];
        for at in order {
            if claims.last() != Some(&&asked[at]) {
                claims.push(&asked[at]);
            }
            places[at] = claims.len() - 1;
        }
        Self { claims, places }
    }
}

pub(super) async fn renew(
    lent: &mut Lent,
    sql: &Statements,
    asked: &[Claim],
    ttl: Duration,
) -> Result<Vec<Renewal>, LeaseError> {
    let batch = Batch::of(asked);
    let mut answers = Vec::with_capacity(batch.claims.len());
    for chunk in batch.claims.chunks(CHUNK_MAX) {
        answers.extend(renew_chunk(lent, sql, chunk, ttl).await?);
    }
    Ok(batch.places.iter().map(|place| answers[*place]).collect())
}

/// What to call the renewal of these claims.
pub(super) fn action(claims: &[Claim]) -> String {
    match claims {
        [one] => act("renew", one),
        many => format!("renew {} leases", many.len()),
    }
}

async fn renew_chunk(
    lent: &mut Lent,
    sql: &Statements,
    chunk: &[&Claim],
    ttl: Duration,
) -> Result<Vec<Renewal>, LeaseError> {
    let action = match chunk {
        [one] => act("renew", one),
        many => format!("renew {} leases", many.len()),
    };
    let keys: Vec<String> = chunk.iter().map(|claim| claim.key.to_string()).collect();
    let owners: Vec<&str> = chunk.iter().map(|claim| claim.replica.as_str()).collect();
    let tenures: Vec<Uuid> = chunk.iter().map(|claim| claim.tenure.as_uuid()).collect();
    let epochs: Vec<i64> = chunk.iter().map(|claim| claim.epoch.as_i64()).collect();
    let ttl = rows::micros(ttl);
    let parameters = [
        (&keys as _, Type::TEXT_ARRAY),
        (&owners as _, Type::TEXT_ARRAY),
        (&tenures as _, Type::UUID_ARRAY),
        (&epochs as _, Type::INT8_ARRAY),
        (&ttl as _, Type::INT8),
    ];
    let renewed = lent.change(&action, &sql.renew, &parameters).await?;
    let mut answers = vec![Renewal::Refused; chunk.len()];
    for row in &renewed {
        let place: i64 = rows::column(row, 0)?;
        // The database counts from 1.
        let answer = usize::try_from(place - 1).ok().and_then(|place| answers.get_mut(place));
        *answer.ok_or_else(|| LeaseError::Unavailable {
            action: action.clone(),
            detail: format!("it answered for claim {place} of {}", chunk.len()),
        })? = Renewal::Granted;
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use leasehold_types::{Epoch, TenureId};
    use proptest::prelude::*;

    use super::*;

    fn claim((key, tenure, epoch): (u8, u8, u64)) -> Claim {
        Claim {
            key: format!("acme/t{key}").parse().unwrap(),
            replica: "a".parse().unwrap(),
            tenure: TenureId::new(Uuid::from_u128(tenure.into())),
            epoch: Epoch::new(epoch).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn each_claim_is_asked_once_in_order_and_answered_where_it_was_asked(
            asked in prop::collection::vec((0..5_u8, 0..3_u8, 1..3_u64), 0..40)
        ) {
            let asked: Vec<Claim> = asked.into_iter().map(claim).collect();
            let batch = Batch::of(&asked);
            prop_assert!(batch.claims.is_sorted_by_key(|claim| &claim.key));
            prop_assert_eq!(batch.places.len(), asked.len());
            for (asked, place) in asked.iter().zip(&batch.places) {
                prop_assert_eq!(asked, batch.claims[*place]);
            }
            let mut once = batch.claims.clone();
            once.dedup();
            prop_assert_eq!(once, batch.claims);
        }
    }
}
