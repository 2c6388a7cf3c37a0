//! Tokens that are right, and each way in which one can be wrong.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use leasehold_fuzz::{Format, Read};
use leasehold_testkit::ManualTimer;
use proptest::prelude::*;
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
        RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{key::Key, *};
use crate::{
    auth::CallerKind,
    config::{AuthSettings, IssuerSettings},
    fuzz::corpus,
};

/// A key of these tests and of nothing else (PKCS #8, DER).
const RSA: &str = "\
MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDfymrWudqLBuCacSrIMK3FvP39Lsbiaov48H4+Y7H8SWNkVz1ZlMgkU2lpKb32\
WmLOaWmGubLMH3+IJJ0s03A5+d+Rrpjb88XgIaGdhZ+ap+SUZaASLS/Q/M/LBs+r7Sm3h8LxU+i4H2Q9FECnV1lDoBz2b6WVCHT9dG/ijy/GZD/6\
CGX0pSTgQJYSdrCxNRfO0OYlG1Fi+qGHL3qHUnuc+2TVZ/ZqxqFVv82hC+5kEPsirwIPSBN5riaX2Z8sWx4ah2M87UXQqJCgO/8+Otpiavbub+qf\
40S4B/5mRYCyESMD/BTVAZh9249tWOw303HyVl6SkwIIUn4fTWCGpQFNAgMBAAECggEAM0i1PBjiMqr0TKAzcCXrpJ1fTSZrkFZfVkByhcSd9JUy\
0DtHxWAZj22IAf/9Vte2vdudQbELfsiXFrFhTXT0ymxvJfjvcbRG+8ppOWp2PWBNOw6g5JlzVD6jNcENVTZnsXXMoDYc5hjXhUG/YTncrGkkSfsi\
5GjIOo701uP+TEWeOA0oFp4CBUUI0QRUMrH4cYQXOiX4bOYh7eoCtwTwgoMC0Q9C6iZOtxJCVjrZ+KcqntOzQ4ITMJ/fqHKi7qit2VW9bz7jDSui\
fXQI/d7trNsU/Wg3vV+2hg73pWlMG78hZAHKMqEV/Y3AgCJ5qf4wmIro/0t3WFF6F5SLrq1hFwKBgQD3/6rO4WTcmcLrMtHpT+MKkVprPeEaADoy\
SQdICFrDkenKusqI8v58lJCbDM7YNQYeyi9XKUIiy3kSos0pRDPGNEP6fTjyE61gbHruHmpZ6MvDbnlWcvO3+yZoThv7QlRP7cVkcOQ5P2wEUdN8\
j9Tn1DXwq54B3fZ4w6A3/3s12wKBgQDnAs4oPWC1lZcbTBpFUkzo+/bfTEmkMudRjpiwEhpfSZMkrOHdxk6ri4z5yquxQaU4rpualRFSwfqsvYjW\
Dmkl3smLlyOJTZw9xwuOqsNtU/ay96VJHztafbxa6fpdN26IFWagXGwcw3SuhZI07z0yoq6ZCoyItpjVMdXklrmR9wKBgD2MZU7s34RkYNzQgwo9\
emKgCmm9NMWoMslSGI2HDUemSfi3fRaaABDZKj5g4mEEX916Xl9qbPCHwSef4f0Q4SyawhhDxcNGoOviYGwCfnCL9y4sl86dvuD1YuXWJNmp75Ta\
tPelkO6oT92OlUc/xx42K6DsZs2d0dLM8lGThXerAoGBAOKcpOFifFkEumuDtw2jk2DFssIP0vmpGbOun2exCn/I6/gBQ7xLSWcMiSmMv+otTEeT\
OX9llc3KDf6gGvhowIruxmURyUFqiccsV9EHAJhh0lJzjodxhMbbKwdAGWKR+vKxk6/hmgiJUA/XZbpZqX3fikkEySFfhgM1VO5dUQK3AoGBAKS6\
fMNssS6Jqh14KFY1xPvMDb33e6HIheNZFzbNE0/8qlH5OTg/9xxnkeQ2fLgnSw7aPI9lRqJ162ervlRMc9/7bTUzCtGuvpzDhnAzPBOi7x0TqtTk\
GAvDSCY1TNqbKF+F66cxi9d4okRPXetdya66oGsYb2hu0s6B6EVdetQ7";
const ISSUER: &str = "https://id.example/";
const AUDIENCE: &str = "leasehold";
/// The moment of these tests, in seconds.
const NOW: i64 = 1_790_000_000;

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The keys of an issuer.
struct Signer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
    random: SystemRandom,
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let p256 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            rsa: RsaKeyPair::from_pkcs8(&STANDARD.decode(RSA).unwrap()).unwrap(),
            p256: EcdsaKeyPair::from_pkcs8(algorithm, p256.as_ref(), &random).unwrap(),
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
            random,
        }
    }

    /// Its key set.
    fn set(&self) -> Value {
        let rsa = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let point = self.p256.public_key().as_ref();
        json!({ "keys": [
            { "kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": b64(&rsa.n),
              "e": b64(&rsa.e) },
            { "kty": "EC", "kid": "e", "crv": "P-256", "x": b64(&point[1..33]), "y": b64(&point[33..]) },
            { "kty": "OKP", "kid": "o", "crv": "Ed25519", "x": b64(self.ed25519.public_key().as_ref()) },
            { "kty": "oct", "kid": "s", "k": b64([7_u8; 32]) },
            { "kty": "EC", "kid": "x", "crv": "P-384", "x": "", "y": "" },
        ] })
    }

    fn sign(&self, key_id: &str, signed: &str) -> Vec<u8> {
        match key_id {
            "r" => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                self.rsa.sign(&RSA_PKCS1_SHA256, &self.random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            "e" => self.p256.sign(&self.random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            "o" => self.ed25519.sign(signed.as_bytes()).as_ref().to_vec(),
            secret => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes())
                .as_ref()
                .to_vec(),
        }
    }

    fn token(&self, key_id: &str, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", b64(header), b64(claims));
        format!("{signed}.{}", b64(self.sign(key_id, &signed)))
    }
}

fn header_of(key_id: &str) -> String {
    let algorithm = match key_id {
        "r" => "RS256",
        "e" => "ES256",
        _ => "EdDSA",
    };
    json!({ "alg": algorithm, "kid": key_id, "typ": "JWT" }).to_string()
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + 60, "nbf": NOW - 60, "iat": NOW })
}

fn with(name: &str, value: Value) -> String {
    let mut all = claims();
    all[name] = value;
    all.to_string()
}

fn without(name: &str) -> String {
    let mut all = claims();
    all.as_object_mut().unwrap().remove(name);
    all.to_string()
}

struct Stage {
    signer: Signer,
    issuers: Issuers,
    settings: IssuerSettings,
    dir: TempDir,
}

fn derivation() -> leasehold_types::DerivationKey {
    leasehold_types::DerivationKey::new([7; 32])
}

impl Stage {
    async fn with(change: impl FnOnce(&mut IssuerSettings, &TempDir)) -> Self {
        let (signer, dir) = (Signer::new(), tempfile::tempdir().unwrap());
        let path = dir.path().join("keys.json");
        std::fs::write(&path, signer.set().to_string()).unwrap();
        let mut settings = IssuerSettings {
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            keys_file: Some(path),
            organization: Some("acme".parse().unwrap()),
            ..IssuerSettings::default()
        };
        change(&mut settings, &dir);
        let issuers = Self::issuers(&settings).await;
        Self { signer, issuers, settings, dir }
    }

    async fn new() -> Self {
        Self::with(|_, _| {}).await
    }

    async fn issuers(settings: &IssuerSettings) -> Issuers {
        let auth = AuthSettings { issuers: vec![settings.clone()], ..AuthSettings::default() };
        Issuers::of(&auth, &derivation(), &ManualTimer::new()).await.unwrap()
    }

    fn judge(&self, token: &str) -> Result<String, &'static str> {
        let now = leasehold_types::Timestamp::from_millis(NOW * 1_000);
        self.issuers.caller_of(token, now).map(|caller| {
            assert_eq!(caller.kind, CallerKind::Person);
            caller.name.to_string()
        })
    }

    #[track_caller]
    fn refused(&self, token: &str) -> &'static str {
        self.judge(token).unwrap_err()
    }
}

#[tokio::test]
async fn a_token_of_each_algorithm_is_its_persons() {
    let stage = Stage::new().await;
    let ada = derivation().tenant(ISSUER, "ada").to_string();
    for key_id in ["r", "e", "o"] {
        let token = stage.signer.token(key_id, &header_of(key_id), &claims().to_string());
        assert_eq!(stage.judge(&token), Ok(ada.clone()), "{key_id}");
        let token = stage.signer.token(key_id, &header_of(key_id), &with("sub", json!("bob")));
        assert_ne!(stage.judge(&token), Ok(ada.clone()), "another subject is another tenant");
    }
    let audiences = with("aud", json!(["other", AUDIENCE]));
    assert_eq!(stage.judge(&stage.signer.token("o", &header_of("o"), &audiences)), Ok(ada));
}

#[tokio::test]
async fn whatever_is_wrong_with_a_token_is_refused() {
    let stage = Stage::new().await;
    let signer = &stage.signer;
    let good = signer.token("r", &header_of("r"), &claims().to_string());
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let unsigned = |header: &str| format!("{}.{payload}.", b64(header));
    let public = signer.rsa.public();
    let modulus = RsaPublicKeyComponents::<Vec<u8>>::from(public).n;
    let mut forgeries = vec![
        // `none`, in every spelling, with and without a signature.
        unsigned(r#"{"alg":"none"}"#),
        unsigned(r#"{"alg":"None","kid":"r"}"#),
        unsigned(r#"{"alg":"NONE","kid":"r"}"#),
        unsigned(r#"{"alg":"","kid":"r"}"#),
        unsigned(r#"{"kid":"r"}"#),
        unsigned(r#"{"alg":["RS256"],"kid":"r"}"#),
        unsigned(r#"{"alg":"RS256","kid":"r"}"#),
        format!("{}.{payload}.{signature}", b64(r#"{"alg":"none","kid":"r"}"#)),
        // Another algorithm than the key's.
        signer.token("r", r#"{"alg":"ES256","kid":"r"}"#, &claims().to_string()),
        signer.token("e", r#"{"alg":"RS256","kid":"e"}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"RS384","kid":"r"}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"PS256","kid":"r"}"#, &claims().to_string()),
        // A secret that is published is none.
        signer.token(&"\u{7}".repeat(32), r#"{"alg":"HS256","kid":"s"}"#, &claims().to_string()),
        // Another key, no key, a key that is wrongly named, a list of them.
        signer.token("e", r#"{"alg":"ES256","kid":"o"}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"RS256","kid":"z"}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"RS256"}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"RS256","kid":7}"#, &claims().to_string()),
        signer.token(
            "r",
            &format!(r#"{{"alg":"RS256","kid":"{}"}}"#, "r".repeat(300)),
            &claims().to_string(),
        ),
        // Critical headers are known in no case; a name that is there twice is nobody's.
        signer.token("r", r#"{"alg":"RS256","kid":"r","crit":["exp"],"exp":1}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"RS256","kid":"r","b64":false}"#, &claims().to_string()),
        signer.token("r", r#"{"alg":"none","alg":"RS256","kid":"r"}"#, &claims().to_string()),
        signer.token("r", &header_of("r"), &claims().to_string().replacen('{', r#"{"sub":"eve","#, 1)),
        // What is no token at all.
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{header}.{payload}"),
        format!("{good}.x"),
        format!("{header}.{payload}.{signature}="),
        format!("{header}.{payload}.{}", b64("no signature")),
        format!("{header}.{}.{signature}", b64(with("sub", json!("eve")))),
        format!("{}.{payload}.{signature}", b64("no json")),
        signer.token("r", &header_of("r"), "[]"),
        signer.token("r", &header_of("r"), "null"),
        signer.token("r", &header_of("r"), &format!("{{\"iss\":{}1{}}}", "[".repeat(500), "]".repeat(500))),
    ];
    // Algorithm confusion: the public key, in each shape that it is published in, as an HMAC secret.
    let shapes = [
        modulus.clone(),
        b64(&modulus).into_bytes(),
        public.as_ref().to_vec(),
        signer.set().to_string().into_bytes(),
    ];
    for secret in shapes {
        let forged = format!("{}.{payload}", b64(r#"{"alg":"HS256","kid":"r"}"#));
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), forged.as_bytes());
        forgeries.push(format!("{forged}.{}", b64(signature)));
    }
    for forgery in &forgeries {
        assert_eq!(stage.refused(forgery), "the token is not valid", "{forgery}");
    }
    assert!(stage.judge(&good).is_ok());
}

#[tokio::test]
async fn whatever_a_token_says_that_is_not_so_is_refused() {
    let stage = Stage::new().await;
    for claims in [
        with("exp", json!(NOW - 31)),
        with("exp", json!(NOW - 30)),
        with("exp", json!((NOW + 60).to_string())),
        with("exp", json!(-1)),
        with("exp", json!(1e300)),
        with("exp", Value::Null),
        without("exp"),
        with("nbf", json!(NOW + 31)),
        with("nbf", json!("now")),
        with("aud", json!("other")),
        with("aud", json!(["other"])),
        with("aud", json!([AUDIENCE, 7])),
        with("aud", json!([])),
        with("aud", json!({ "leasehold": true })),
        with("aud", json!(vec![AUDIENCE; 65])),
        without("aud"),
        with("iss", json!("https://id.example")),
        with("iss", json!([ISSUER])),
        without("iss"),
        with("sub", json!("")),
        with("sub", json!(7)),
        with("sub", json!("a".repeat(1_025))),
        without("sub"),
    ] {
        let token = stage.signer.token("o", &header_of("o"), &claims);
        stage.refused(&token);
    }
    for claims in [with("exp", json!(NOW - 29)), with("nbf", json!(NOW + 30)), without("nbf")] {
        assert!(stage.judge(&stage.signer.token("o", &header_of("o"), &claims)).is_ok(), "{claims}");
    }
}

#[tokio::test]
async fn an_organization_by_a_claim_is_one_of_the_list() {
    let stage = Stage::with(|settings, _| {
        settings.organization = None;
        settings.organization_claim = Some("org".to_owned());
        settings.organizations = ["acme", "beta"].map(|org| org.parse().unwrap()).into();
    })
    .await;
    let reached = |claims: String| {
        let now = leasehold_types::Timestamp::from_millis(NOW * 1_000);
        let token = stage.signer.token("o", &header_of("o"), &claims);
        let caller = stage.issuers.caller_of(&token, now).ok()?;
        ["acme", "beta", "other"]
            .into_iter()
            .find(|org| caller.reaches_tenant(&format!("{org}/{}", caller.name).parse().unwrap()))
    };
    assert_eq!(reached(with("org", json!("acme"))), Some("acme"));
    assert_eq!(reached(with("org", json!("beta"))), Some("beta"));
    for other in [json!("other"), json!("../acme"), json!(["acme"]), json!(""), Value::Null] {
        assert_eq!(reached(with("org", other.clone())), None, "{other}");
    }
    assert_eq!(reached(claims().to_string()), None);
}

#[tokio::test]
async fn a_shared_secret_counts_only_by_its_file() {
    let secret = "a-secret-of-thirty-two-bytes-or-more";
    let stage = Stage::with(|settings, dir| {
        let path = dir.path().join("secret");
        std::fs::write(&path, format!("{secret}\n")).unwrap();
        settings.keys_file = None;
        settings.hmac_key_file = Some(path);
    })
    .await;
    let token = stage.signer.token(secret, r#"{"alg":"HS256"}"#, &claims().to_string());
    assert!(stage.judge(&token).is_ok());
    let token =
        stage.signer.token("another-secret-of-thirty-two-bytes", r#"{"alg":"HS256"}"#, &claims().to_string());
    stage.refused(&token);
    stage.refused(&stage.signer.token("r", &header_of("r"), &claims().to_string()));
    assert_eq!(Key::of_secret(b"short").unwrap_err(), KeyError::ShortSecret);
}

#[tokio::test]
async fn keys_are_exchanged_and_the_last_good_ones_stay() {
    let stage = Stage::new().await;
    let next = Signer::new();
    let path = stage.settings.keys_file.clone().unwrap();
    let (old, new) = (
        stage.signer.token("o", &header_of("o"), &claims().to_string()),
        next.token("o", &header_of("o"), &claims().to_string()),
    );
    assert!(stage.judge(&old).is_ok() && stage.judge(&new).is_err());
    std::fs::write(&path, next.set().to_string()).unwrap();
    stage.issuers.refresh(&ManualTimer::new()).await;
    assert!(stage.judge(&old).is_err() && stage.judge(&new).is_ok());
    for broken in ["", "{}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}"] {
        std::fs::write(&path, broken).unwrap();
        stage.issuers.refresh(&ManualTimer::new()).await;
        assert!(stage.judge(&new).is_ok(), "the last good ones stay: {broken}");
    }
    drop(stage.dir);
    stage.issuers.refresh(&ManualTimer::new()).await;
    assert!(stage.issuers.caller_of(&new, leasehold_types::Timestamp::from_millis(NOW * 1_000)).is_ok());
}

#[test]
fn keys_that_say_they_are_for_something_else_are_passed_over() {
    let signer = Signer::new();
    let set = signer.set();
    let changed = |name: &str, value: Value| {
        let mut key = set["keys"][0].clone();
        key[name] = value;
        Key::of_set(json!({ "keys": [key] }).to_string().as_bytes()).map(|keys| keys.len())
    };
    assert_eq!(changed("use", json!("sig")), Ok(1));
    assert_eq!(changed("key_ops", json!(["verify"])), Ok(1));
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["sign"])),
        ("key_ops", json!("verify")),
        ("alg", json!("HS256")),
        ("alg", json!("PS256")),
        ("kty", json!("oct")),
        ("n", json!(b64([0xff; 128]))),
        ("n", json!(b64(vec![0xff; 2_048]))),
        ("n", json!(7)),
    ] {
        assert_eq!(changed(name, value.clone()), Err(KeyError::NoKey), "{name}: {value}");
    }
    let many = vec![set["keys"][0].clone(); 65];
    assert_eq!(Key::of_set(json!({ "keys": many }).to_string().as_bytes()).unwrap_err(), KeyError::TooMany);
    for none in ["", "[]", "{\"keys\":{}}", "{\"keys\":[7]}"] {
        assert_eq!(Key::of_set(none.as_bytes()).unwrap_err(), KeyError::NoSet, "{none}");
    }
}

#[test]
fn keys_are_fetched_where_nobody_in_between_may_change_them() {
    for url in ["https://id.example/keys", "http://127.0.0.1:1/keys", "http://[::1]:1/", "http://localhost/"]
    {
        assert!(check_url(url).is_ok(), "{url}");
    }
    for url in
        ["http://id.example/keys", "http://127.0.0.1.example/", "ftp://localhost/", "https://", "keys", ""]
    {
        assert!(check_url(url).is_err(), "{url}");
    }
}

#[test]
fn a_token_is_taken_apart_as_it_is_written_whatever_the_bytes() {
    let read = |bytes: &[u8]| -> Read {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let read = compact::Compact::read(text).ok_or("no token")?;
        let signature = b64(&read.signature);
        Ok([read.signed, b".", signature.as_bytes()].concat())
    };
    Format { name: "jwt", read: &read, is_same: &|input, written| input == written }.hold(corpus());
}

#[test]
fn a_set_of_keys_has_keys_that_can_be_asked_whatever_the_bytes() {
    let read = |bytes: &[u8]| -> Read {
        let keys = Key::of_set(bytes).map_err(|error| error.to_string())?;
        assert!((1..=64).contains(&keys.len()));
        for key in &keys {
            assert_ne!(key.algorithm().name(), "HS256", "a secret that is published is none");
            for signature in [&b""[..], &[0; 64], &[0xff; 256]] {
                assert!(!key.made(b"signed", signature), "{key:?}");
            }
        }
        Ok(bytes.to_vec())
    };
    Format { name: "jwks", read: &read, is_same: &|input, written| input == written }.hold(corpus());
}

proptest! {
    #[test]
    fn whatever_a_token_is_made_of_it_is_read_or_refused(text in "[A-Za-z0-9_.-]{0,200}") {
        drop(compact::Compact::read(&text));
    }

    #[test]
    fn a_changed_token_is_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let signer = Signer::new();
        let keys = Key::of_set(signer.set().to_string().as_bytes()).unwrap();
        let good = signer.token("o", &header_of("o"), &claims().to_string());
        let mut bytes = good.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        prop_assume!(bytes != good.as_bytes());
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        if let Some(read) = compact::Compact::read(&text) {
            let before = compact::Compact::read(&good).unwrap();
            let is_same = read.signed == before.signed && read.signature == before.signature;
            let made = keys.iter().any(|key| key.algorithm() == read.algorithm && key.made(read.signed, &read.signature));
            prop_assert!(is_same || !made, "{}", text);
        }
    }
}
