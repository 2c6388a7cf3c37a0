//! The verbs and a replica that speaks TLS.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::process::{Replica, leasehold, leasehold_in};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[tokio::test]
async fn a_replica_is_asked_by_https_and_known_by_its_authority() {
    let dir = tempfile::tempdir().unwrap();
    let [cert, key, ca, other] =
        ["cert.pem", "key.pem", "ca.pem", "other.pem"].map(|name| dir.path().join(name));
    let (issuer, pair) = (authority(), KeyPair::generate().unwrap());
    let made = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&pair, &issuer).unwrap();
    fs::write(&cert, made.pem()).unwrap();
    fs::write(&key, pair.serialize_pem()).unwrap();
    fs::write(&ca, issuer.pem()).unwrap();
    fs::write(&other, authority().pem()).unwrap();
    let files = [("LEASEHOLD_TLS__CERT_FILE", text(&cert)), ("LEASEHOLD_TLS__KEY_FILE", text(&key))];
    let replica = Replica::start_in(&dir.path().join("data"), &files).await;
    assert!(replica.endpoint.starts_with("https://127.0.0.1:"), "{}", replica.endpoint);
    assert!(replica.banner.contains(&replica.endpoint), "{}", replica.banner);

    let ask = ["tenant", "list", "acme", "--endpoint", &replica.endpoint];
    let asked = |more: &[&str]| {
        leasehold(ask.iter().chain(more).map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    };
    asked(&["--ca-file", text(&ca)]).await.assert(0);
    leasehold_in(&[("LEASEHOLD_CA_FILE", text(&ca))], ask).await.assert(0);
    for authorities in [&["--ca-file", text(&other)][..], &[]] {
        let refused = asked(authorities).await.assert(5);
        assert!(refused.err.contains("invalid peer certificate"), "{refused:?}");
    }
    for what in ["alive", "ready"] {
        let probe = ["probe", what, "--endpoint", &replica.endpoint, "--ca-file"];
        leasehold(probe.into_iter().chain([text(&ca)])).await.assert(0);
        leasehold(probe.into_iter().chain([text(&other)])).await.assert(5);
        // As in a container, which knows what it was told.
        let listen = replica.endpoint.trim_start_matches("https://");
        let told = [("LEASEHOLD_LISTEN", listen), ("LEASEHOLD_CA_FILE", text(&ca)), files[0]];
        leasehold_in(&told, ["probe", what]).await.assert(0);
        leasehold_in(&[told[0], told[2]], ["probe", what]).await.assert(0);
        // Whoever is named is known by an authority, on this machine too.
        leasehold_in(&[told[2]], ["probe", what, "--endpoint", &replica.endpoint]).await.assert(5);
    }
    let refused = asked(&["--ca-file", text(&key), "--json"]).await.assert(2);
    assert_eq!(refused.error_code(), "invalid_configuration");
    assert!(refused.out.contains("key.pem"), "{refused:?}");
    let in_clear = replica.endpoint.replace("https://", "http://");
    let refused = leasehold(["tenant", "list", "acme", "--endpoint", &in_clear]).await.assert(2);
    assert!(refused.err.contains("does not answer like a replica"), "{refused:?}");
    replica.stop().await.assert(0);
}

#[tokio::test]
async fn a_token_leaves_this_machine_by_tls_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "lh_secret_hunter2\n").unwrap();
    let ask = ["tenant", "list", "acme", "--endpoint", "http://ledgers.invalid:7400", "--token-file"];
    let refused = leasehold(ask.into_iter().chain([text(&token)])).await.assert(2);
    assert!(refused.err.contains("in clear") && refused.err.contains("https://"), "{refused:?}");
    assert!(!refused.err.contains("hunter2"), "{refused:?}");
}

#[tokio::test]
async fn a_pair_that_cannot_be_used_ends_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let (nowhere, key) = (dir.path().join("nowhere.pem"), dir.path().join("key.pem"));
    let files = [("LEASEHOLD_TLS__CERT_FILE", text(&nowhere)), ("LEASEHOLD_TLS__KEY_FILE", text(&key))];
    let data = dir.path().join("data");
    let refused =
        leasehold_in(&files, ["serve", "--dev", "--json", "--data-dir", text(&data)]).await.assert(2);
    assert_eq!(refused.error_code(), "invalid_configuration");
    assert!(refused.out.contains("tls.cert_file") && refused.out.contains("nowhere.pem"), "{refused:?}");
}
