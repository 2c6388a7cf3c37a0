//! A tenant's ledger as a file, verified on its way.

use std::{fs::File, io::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use indicatif::HumanBytes;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    cli::TenantExport,
    client::{Answer, Call, Client, Method, not_a_replica, unreachable},
    error::CliError,
    new_file::NewFile,
    output::{Output, path_text},
};

pub(super) async fn export(client: &Client, args: &TenantExport, output: Output) -> Result<(), CliError> {
    let key = &args.key;
    let file = NewFile::beside(&args.to, args.force)?;
    let (endpoint, response) = client.stream(&Call::of_tenant(Method::GET, key).verb("export")).await?;
    let expected = digest_of(&response)
        .ok_or_else(|| not_a_replica(&endpoint, "it sent a file without its Content-Digest"))?;

    let bar = output.progress().bytes(&format!("exporting {key}"), response.content_length());
    let path = file.path();
    let failed = |source| CliError::Local { action: "write", path: args.to.clone(), source };
    let mut written = File::options().write(true).create_new(true).open(&path).map_err(failed)?;
    let (mut digest, mut bytes, mut response) = (Sha256::new(), 0_u64, response);
    while let Some(piece) = response.piece().await.map_err(unreachable(&endpoint))? {
        digest.update(&piece);
        written.write_all(&piece).map_err(failed)?;
        bytes += piece.len() as u64;
        bar.advance(piece.len() as u64);
    }
    drop((written, bar));

    let found: [u8; 32] = digest.finalize().into();
    let (found, expected) = (hex::encode(found), hex::encode(expected));
    if found != expected {
        return Err(CliError::OtherDigest { key: key.clone(), found, expected });
    }
    file.appear()?;
    let document = json!({ "key": key, "file": path_text(&args.to), "bytes": bytes, "sha256": found });
    output.show(&document, |out| {
        writeln!(out, "wrote {}: {}, SHA-256 {found}", args.to.display(), HumanBytes(bytes))
    })
}

/// The SHA-256 that came with the file (RFC 9530).
fn digest_of(response: &Answer) -> Option<[u8; 32]> {
    let header = response.headers().get("content-digest")?.to_str().ok()?;
    sha256_in(header)
}

fn sha256_in(header: &str) -> Option<[u8; 32]> {
    header.split(',').find_map(|digest| {
        let text = digest.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
        STANDARD.decode(text).ok()?.try_into().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_found_among_others() {
        let digest = STANDARD.encode([7; 32]);
        assert_eq!(sha256_in(&format!("sha-256=:{digest}:")), Some([7; 32]));
        assert_eq!(sha256_in(&format!("md5=:AAAA:, sha-256=:{digest}:")), Some([7; 32]));
        for header in ["", "sha-256=", "sha-256=:AAAA:", "sha-512=:AAAA:", &digest] {
            assert_eq!(sha256_in(header), None, "{header}");
        }
    }
}
