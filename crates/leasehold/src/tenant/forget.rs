//! Everything of a tenant goes, for ever, and the receipt says so.

use std::io::{self, BufRead, IsTerminal as _, Write};

use indicatif::HumanBytes;
use leasehold_types::LeaseKey;
use serde::Deserialize;

use crate::{
    cli::TenantForget,
    client::{Call, Client, Method},
    error::CliError,
    output::Output,
};

/// What would go.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Preview {
    epoch: u64,
    objects: u64,
    bytes: u64,
}

/// What went, as people are shown it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Receipt {
    floor: u64,
    objects_deleted: u64,
    bytes_deleted: u64,
    verified_at: String,
    recheck_at: Vec<String>,
}

pub(super) async fn forget(client: &Client, args: &TenantForget, output: Output) -> Result<(), CliError> {
    let key = &args.key;
    let call = Call::of_tenant(Method::DELETE, key);
    if args.dry_run {
        let document = client.document(&call.with("dry_run", "true")).await?;
        let Preview { epoch, objects, bytes } = Preview::deserialize(&document).unwrap_or_default();
        return output.show(&document, |out| {
            writeln!(out, "would forget {key} at epoch {epoch}: {objects} objects, {}", HumanBytes(bytes))?;
            writeln!(out, "nothing was deleted")
        });
    }
    if !args.yes {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(CliError::NoTerminal { key: key.clone() });
        }
        let preview = client.document(&call.clone().with("dry_run", "true")).await?;
        let preview = Preview::deserialize(&preview).unwrap_or_default();
        let confirmed = confirm(key, &preview, &mut io::stdin().lock(), &mut io::stderr().lock());
        if !confirmed.map_err(|source| CliError::Process { action: "ask", source })? {
            return Err(CliError::NotConfirmed { key: key.clone() });
        }
    }
    let bar = output.progress().spinner(&format!("forgetting {key}"));
    let document = client.document(&call.if_match(args.if_epoch)).await?;
    drop(bar);
    let receipt = Receipt::deserialize(&document).unwrap_or_default();
    output.show(&document, |out| write(key, &receipt, out))
}

/// The tenant's key has to be typed: a `y` is typed too easily for what cannot be undone.
fn confirm(
    key: &LeaseKey,
    preview: &Preview,
    answers: &mut impl BufRead,
    questions: &mut impl Write,
) -> io::Result<bool> {
    let Preview { epoch, objects, bytes } = preview;
    write!(
        questions,
        "Everything of {key} (epoch {epoch}, {objects} objects, {}) will be deleted for ever.\nType {key} to confirm: ",
        HumanBytes(*bytes)
    )?;
    questions.flush()?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    Ok(answer.trim() == key.to_string())
}

fn write(key: &LeaseKey, receipt: &Receipt, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "forgotten\t{key}")?;
    writeln!(out, "up to\tepoch {}", receipt.floor)?;
    writeln!(out, "deleted\t{} objects, {}", receipt.objects_deleted, HumanBytes(receipt.bytes_deleted))?;
    writeln!(out, "verified\t{}", receipt.verified_at)?;
    writeln!(out, "looked at again\t{}", receipt.recheck_at.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_itself_confirms() {
        let key: LeaseKey = "acme/user-1".parse().unwrap();
        for (answer, confirmed) in [
            ("acme/user-1\n", true),
            ("  acme/user-1  \n", true),
            ("y\n", false),
            ("yes\n", false),
            ("acme/user-2\n", false),
            ("", false),
        ] {
            let mut questions = Vec::new();
            let preview = Preview { epoch: 2, objects: 3, bytes: 4_096 };
            let said = confirm(&key, &preview, &mut answer.as_bytes(), &mut questions).unwrap();
            assert_eq!(said, confirmed, "{answer:?}");
            let questions = String::from_utf8(questions).unwrap();
            assert!(questions.contains("3 objects") && questions.contains("epoch 2"), "{questions}");
        }
    }
}
