//! Tokens that are made here by the rules of RFC 7515, byte by byte, and what becomes of them.

use super::*;
use crate::telemetry::Telemetry;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64};
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RSA_PSS_SHA512,
    RsaEncoding, RsaKeyPair,
};
use ring::{hmac, rand::SystemRandom};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW: u64 = 1_800_000_000;
const PEER: &str = "192.0.2.7";

/// A directory that goes away with the test.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tenuto-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn key_file(&self, keys: &Value, mode: u32) -> PathBuf {
        let path = self.0.join("keys.json");
        fs::write(&path, json!({ "keys": keys }).to_string()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn secret_key() -> Value {
    json!({ "kty": "oct", "kid": "a", "alg": "HS256", "k": BASE64.encode(SECRET) })
}

/// The first two parts of a token.
fn signing_input(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

fn hs256(secret: &[u8], header: &Value, claims: &Value) -> String {
    let input = signing_input(header, claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), input.as_bytes());
    format!("{input}.{}", BASE64.encode(tag))
}

fn check(control: &AccessControl, access: TokenNeed<'_>, token: Option<&str>) -> String {
    check_at(NOW, control, access, token)
}

fn check_at(
    seconds: u64,
    control: &AccessControl,
    access: TokenNeed<'_>,
    token: Option<&str>,
) -> String {
    let now = UNIX_EPOCH + Duration::from_secs(seconds);
    match control.check(access, token, PEER.parse().unwrap(), now) {
        Ok(Permit { max_height: Some(most), .. }) => format!("allowed up to {most}"),
        Ok(Permit { priority: Priority::Normal, .. }) => "allowed".to_owned(),
        Ok(Permit { priority, .. }) => format!("allowed, {}", priority.word()),
        Err(Denied::NoToken) => "no token".to_owned(),
        Err(Denied::Invalid(why)) => format!("401: {why}"),
        Err(Denied::NotAllowed(why)) => format!("403: {why}"),
    }
}

#[test]
fn each_token_is_allowed_or_denied_for_its_reason() {
    let dir = Dir::new("tokens");
    let control = AccessControl::new(Some(&dir.key_file(&json!([secret_key()]), 0o600))).unwrap();
    let (film, list, server) = (TokenNeed::Title("film"), TokenNeed::TitleList, TokenNeed::Server);
    let cache = TokenNeed::Origin("film");
    let header = json!({ "alg": "HS256", "kid": "a" });
    let good = NOW + 60;
    let table = [
        (film, header.clone(), json!({ "exp": good }), "allowed"),
        (film, json!({ "alg": "HS256" }), json!({ "exp": good }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "title": "film" }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "title": ["a", "fi*"] }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "title": "*" }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "ip": PEER }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "ip": "::ffff:192.0.2.7" }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "nbf": NOW }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "aud": "tenuto" }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "aud": ["x", "tenuto"] }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "sub": "somebody", "x": 1 }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "sub": "a".repeat(255) }), "allowed"),
        (
            film,
            header.clone(),
            json!({ "exp": good, "sub": "a".repeat(256) }),
            "401: its claim `sub`",
        ),
        (film, header.clone(), json!({ "exp": good, "sub": 17, "jti": null }), "allowed"),
        (film, header.clone(), json!({ "exp": good, "jti": ["a"] }), "401: its claim `jti` is not"),
        (film, header.clone(), json!({ "exp": good, "max_height": 720 }), "allowed up to 720"),
        (film, header.clone(), json!({ "exp": good, "max_height": "720" }), "401: its claim `max_"),
        (film, header.clone(), json!({ "exp": good, "priority": "high" }), "allowed, high"),
        (film, header.clone(), json!({ "exp": good, "priority": "low" }), "allowed, low"),
        (film, header.clone(), json!({ "exp": good, "priority": "first" }), "401: its claim `pri"),
        (list, header.clone(), json!({ "exp": good }), "allowed"),
        (server, header.clone(), json!({ "exp": good, "operator": true }), "allowed"),
        (cache, header.clone(), json!({ "exp": good, "origin": true }), "allowed"),
        (film, header.clone(), json!({ "exp": NOW - 5 }), "401: it expired 5.0 s ago"),
        (film, header.clone(), json!({ "exp": NOW }), "401: it expired 0.0 s ago"),
        (film, header.clone(), json!({ "exp": good, "nbf": NOW + 9 }), "401: it is valid in 9.0 s"),
        (film, header.clone(), json!({}), "401: its claim `exp` is missing"),
        (film, header.clone(), json!({ "exp": good.to_string() }), "401: its claim `exp`"),
        (film, header.clone(), json!({ "exp": -1.5 }), "401: its claim `exp` is not"),
        (film, header.clone(), json!({ "exp": (NOW as f64) + 1.5 }), "allowed"),
        (film, header.clone(), json!({ "exp": (NOW as f64) + 0.5 }), "401: it expired 0.0 s ago"),
        (film, header.clone(), json!({ "exp": good, "nbf": NOW as f64 }), "allowed"),
        (
            film,
            header.clone(),
            json!({ "exp": good, "nbf": (NOW as f64) + 0.5 }),
            "401: it is valid",
        ),
        (film, json!({ "alg": "HS256", "crit": ["x"] }), json!({ "exp": good }), "401: its header"),
        (film, header.clone(), json!({ "exp": good, "nbf": "0" }), "401: its claim `nbf`"),
        (film, header.clone(), json!({ "exp": good, "title": 7 }), "401: its claim `title`"),
        (film, header.clone(), json!({ "exp": good, "aud": "x" }), "401: it is meant for another"),
        (film, header.clone(), json!({ "exp": good, "aud": [] }), "401: it is meant for another"),
        (film, header.clone(), json!({ "exp": good, "aud": 5 }), "401: its claim `aud`"),
        (film, header.clone(), json!({ "exp": good, "aud": true }), "401: its claim `aud`"),
        (film, header.clone(), json!({ "exp": good, "aud": [5] }), "401: its claim `aud`"),
        (film, header.clone(), json!({ "exp": good, "aud": { "x": 1 } }), "401: its claim `aud`"),
        (film, header.clone(), json!({ "exp": good, "aud": null }), "401: its claim `aud` is null"),
        (film, header.clone(), json!({ "exp": good, "title": null }), "401: its claim `title` is"),
        (film, header.clone(), json!({ "exp": good, "ip": null }), "401: its claim `ip` is null"),
        (list, header.clone(), json!({ "exp": good, "max_height": null }), "401: its claim `max"),
        (film, json!({ "alg": "HS256", "kid": "b" }), json!({ "exp": good }), "401: no key"),
        (film, json!({ "alg": "HS512", "kid": "a" }), json!({ "exp": good }), "401: no key"),
        (film, json!({ "alg": "none" }), json!({ "exp": good }), "401: it is no signed JSON"),
        (film, header.clone(), json!({ "exp": good, "title": "fil" }), "403: the token does not"),
        (film, header.clone(), json!({ "exp": good, "title": [] }), "403: the token does not"),
        (film, header.clone(), json!({ "exp": good, "ip": "192.0.2.8" }), "403: the token is for"),
        (list, header.clone(), json!({ "exp": good, "title": "film" }), "403: the token opens"),
        (server, header.clone(), json!({ "exp": good }), "403: the token is a viewer's"),
        (server, header.clone(), json!({ "exp": good, "origin": true }), "403: the token is"),
        (cache, header.clone(), json!({ "exp": good, "operator": true }), "403: the token is a v"),
        (
            cache,
            header.clone(),
            json!({ "exp": good, "origin": true, "max_height": 720 }),
            "403: the token has a largest",
        ),
        (
            cache,
            header.clone(),
            json!({ "exp": good, "origin": true, "priority": "low" }),
            "403: the token has a priority",
        ),
        (
            cache,
            header.clone(),
            json!({ "exp": good, "origin": true, "title": "fil" }),
            "403: the token does not",
        ),
    ];
    for (access, header, claims, expected) in table {
        let said = check(&control, access, Some(&hs256(SECRET, &header, &claims)));
        assert!(said.starts_with(expected), "{header} {claims}: {said}");
    }
    assert_eq!(check(&control, film, None), "no token");
    let open = AccessControl::new(None).unwrap();
    assert_eq!(check(&open, server, None), "allowed", "without keys everybody is an operator");
}

#[test]
fn a_changed_token_is_denied_wherever_it_was_changed() {
    let dir = Dir::new("changed");
    let control = AccessControl::new(Some(&dir.key_file(&json!([secret_key()]), 0o600))).unwrap();
    let claims = json!({ "exp": NOW + 60, "title": "other" });
    let token = hs256(SECRET, &json!({ "alg": "HS256", "kid": "a" }), &claims);
    let other = hs256(b"another secret of 32 bytes here!", &json!({ "alg": "HS256" }), &claims);
    assert!(check(&control, TokenNeed::TitleList, Some(&other)).starts_with("401: its signature"));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        // The last letter of a signature has two bits that mean nothing.
        let said = check(&control, TokenNeed::Title("other"), Some(&changed));
        assert!(said.starts_with("401") || at == token.len() - 1, "{at}: {said}");
    }
    for cut in 0..token.len() - 1 {
        let said = check(&control, TokenNeed::Title("other"), Some(&token[..cut]));
        assert!(said.starts_with("401"), "{cut}: {said}");
    }
}

#[test]
fn keys_of_an_identity_provider_verify_and_are_never_taken_for_secrets() {
    let random = SystemRandom::new();
    let claims = json!({ "exp": NOW + 60, "aud": ["account", "tenuto"] });
    let p256 = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(p256, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(p256, pkcs8.as_ref(), &random).unwrap();
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let ed = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let point = ec.public_key().as_ref();
    let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
    let keys = json!([
        { "kty": "EC", "crv": "P-256", "kid": "ec", "x": x, "y": y },
        { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": BASE64.encode(ed.public_key()) },
    ]);
    let dir = Dir::new("provider");
    // Public keys are no secret.
    let control = AccessControl::new(Some(&dir.key_file(&keys, 0o644))).unwrap();
    let film = TokenNeed::Title("film");

    let input = signing_input(&json!({ "alg": "ES256", "kid": "ec" }), &claims);
    let signature = ec.sign(&random, input.as_bytes()).unwrap();
    let token = format!("{input}.{}", BASE64.encode(signature));
    assert_eq!(check(&control, film, Some(&token)), "allowed");
    let input = signing_input(&json!({ "alg": "EdDSA", "kid": "ed" }), &claims);
    let token = format!("{input}.{}", BASE64.encode(ed.sign(input.as_bytes())));
    assert_eq!(check(&control, film, Some(&token)), "allowed");
    // What the provider signs for its other services opens nothing.
    for (claims, expected) in [
        (json!({ "exp": NOW + 60 }), "401: its claim `aud` is missing"),
        (json!({ "exp": NOW + 60, "aud": "account" }), "401: it is meant for another"),
        (json!({ "exp": NOW + 60, "aud": null }), "401: its claim `aud` is null"),
    ] {
        let input = signing_input(&json!({ "alg": "EdDSA", "kid": "ed" }), &claims);
        let token = format!("{input}.{}", BASE64.encode(ed.sign(input.as_bytes())));
        let said = check(&control, film, Some(&token));
        assert!(said.starts_with(expected), "{claims}: {said}");
    }

    // The public key as the secret of an HMAC: everybody has it.
    for secret in [point, ed.public_key().as_ref()] {
        for kid in ["ec", "ed"] {
            let token = hs256(secret, &json!({ "alg": "HS256", "kid": kid }), &claims);
            assert!(check(&control, film, Some(&token)).starts_with("401: no key"));
        }
    }
}

/// A new RSA key. The library verifies with such keys and makes none.
fn rsa_key() -> RsaKeyPair {
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        .output()
        .expect("openssl runs (apt-get install openssl)");
    // As text it is PKCS #8 in every version, as DER it is not.
    let text = String::from_utf8(made.stdout).unwrap();
    let lines: String = text.lines().filter(|line| !line.starts_with("--")).collect();
    RsaKeyPair::from_pkcs8(&BASE64_STANDARD.decode(lines).unwrap()).unwrap()
}

#[test]
fn each_signature_of_an_rsa_key_verifies_as_its_algorithm_and_no_other() {
    let random = SystemRandom::new();
    let (key, other) = (rsa_key(), rsa_key());
    let public: PublicKeyComponents<Vec<u8>> = key.public().into();
    let (n, e) = (BASE64.encode(public.n), BASE64.encode(public.e));
    let keys = json!([{ "kty": "RSA", "kid": "rsa", "n": n, "e": e }]);
    let dir = Dir::new("rsa");
    let control = AccessControl::new(Some(&dir.key_file(&keys, 0o644))).unwrap();
    let film = TokenNeed::Title("film");
    let algorithms: [(&str, &dyn RsaEncoding); 6] = [
        ("RS256", &RSA_PKCS1_SHA256),
        ("RS384", &RSA_PKCS1_SHA384),
        ("RS512", &RSA_PKCS1_SHA512),
        ("PS256", &RSA_PSS_SHA256),
        ("PS384", &RSA_PSS_SHA384),
        ("PS512", &RSA_PSS_SHA512),
    ];
    let signed = |key: &RsaKeyPair, name: &str, encoding| {
        let claims = json!({ "exp": NOW + 60, "aud": "tenuto" });
        let input = signing_input(&json!({ "alg": name }), &claims);
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(encoding, &random, input.as_bytes(), &mut signature).unwrap();
        format!("{input}.{}", BASE64.encode(signature))
    };
    for (named, _) in algorithms {
        for (used, encoding) in algorithms {
            let said = check(&control, film, Some(&signed(&key, named, encoding)));
            let expected = if named == used { "allowed" } else { "401: its signature" };
            assert!(said.starts_with(expected), "{named} signed as {used}: {said}");
        }
        let (_, encoding) = algorithms.iter().find(|(name, _)| *name == named).unwrap();
        let said = check(&control, film, Some(&signed(&other, named, *encoding)));
        assert!(said.starts_with("401: its signature"), "{named} by another key: {said}");
    }
    // The modulus as the secret of an HMAC: everybody has it.
    let public: PublicKeyComponents<Vec<u8>> = key.public().into();
    let token = hs256(&public.n, &json!({ "alg": "HS256" }), &json!({ "exp": NOW + 60 }));
    assert!(check(&control, film, Some(&token)).starts_with("401: no key"));
}

#[test]
fn a_key_file_that_cannot_be_used_is_refused_with_the_reason() {
    let dir = Dir::new("files");
    let of = |keys: Value, mode| {
        let file = dir.key_file(&keys, mode);
        AccessControl::new(Some(&file)).unwrap_err().to_string()
    };
    let short = json!([{ "kty": "oct", "k": BASE64.encode(&SECRET[1..]) }]);
    let ours = secret_key();
    let mismatched = json!([{ "kty": "oct", "alg": "ES256", "k": ours["k"] }]);
    for (keys, mode, says) in [
        (json!([ours.clone()]), 0o644, "can be read by other users"),
        (json!([{ "kty": "RSA", "n": "wAE", "e": "AQAB" }]), 0o600, "fewer than 2048 bits"),
        (short, 0o600, "shorter than 32 bytes"),
        (mismatched, 0o600, "not for keys of its kind"),
        (json!({}), 0o600, "no JSON Web Key Set"),
    ] {
        let said = of(keys, mode);
        assert!(said.contains(says), "{said}");
    }
    // As Kubernetes mounts it for a program that is not root.
    assert!(AccessControl::new(Some(&dir.key_file(&json!([secret_key()]), 0o440))).is_ok());
    fs::remove_file(dir.0.join("keys.json")).unwrap();
    let empty = AccessControl::new(Some(&dir.key_file(&json!([]), 0o600))).unwrap();
    assert!(empty.opens_nothing());
    let token = hs256(SECRET, &json!({ "alg": "HS256" }), &json!({ "exp": NOW + 60 }));
    let said = check(&empty, TokenNeed::Title("film"), Some(&token));
    assert!(said.starts_with("401: no key"), "{said}");
    let missing = AccessControl::new(Some(&dir.0.join("none"))).unwrap_err();
    assert!(missing.hint.unwrap().contains("--new"));
}

#[test]
fn a_key_file_that_changes_is_read_again_and_one_that_cannot_be_used_is_told() {
    let dir = Dir::new("exchanged");
    let path = dir.key_file(&json!([secret_key()]), 0o600);
    let (log, thread) = Log::start(Some(&dir.0.join("log")), Telemetry::default()).unwrap();
    let control = AccessControl::new(Some(&path)).unwrap().logged(log);
    let token = hs256(SECRET, &json!({ "alg": "HS256" }), &json!({ "exp": NOW + 60 }));
    let other = json!({ "kty": "oct", "k": BASE64.encode([7; 32]) });
    let write = |text: &str| fs::write(&path, text).unwrap();
    let keys = |keys: Value| write(&json!({ "keys": keys }).to_string());
    // Each two seconds after the one before, because the file is looked at once a second.
    let steps: [(&dyn Fn(), &str, &str); 6] = [
        (&|| write("{bad"), "allowed", "keys-not-usable"),
        (&|| keys(json!([other])), "401", "keys-replaced"),
        (&|| keys(json!([secret_key(), other])), "allowed", "keys-replaced"),
        (&|| keys(json!([])), "401", "keys-replaced"),
        (&|| keys(json!([secret_key()])), "allowed", "keys-replaced"),
        (&|| fs::remove_file(&path).unwrap(), "allowed", "keys-not-usable"),
    ];
    let mut told = Vec::new();
    for (at, (change, answer, event)) in (NOW..).step_by(2).zip(steps) {
        change();
        for at in [at, at + 1] {
            let said = check_at(at, &control, TokenNeed::Title("film"), Some(&token));
            assert!(said.starts_with(answer), "{event} {at}: {said}");
        }
        told.push(event);
    }
    drop(control);
    thread.unwrap().join().unwrap();
    let log = fs::read_to_string(dir.0.join("log")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<String> = lines.map(|it| it["event"].as_str().unwrap().into()).collect();
    assert_eq!(events, told, "each once");
}

#[test]
fn a_new_key_file_signs_what_it_verifies_and_is_never_overwritten() {
    let dir = Dir::new("new");
    let path = dir.0.join("keys.json");
    new_key_file(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(new_key_file(&path).is_err());
    let title = Some(TitlePatterns::Several(vec!["film".to_owned(), "series *".to_owned()]));
    let claims = TokenClaims { exp: NOW + 60, title, ..TokenClaims::default() };
    let token = claims.sign(&path).unwrap();
    let control = AccessControl::new(Some(&path)).unwrap();
    for (name, expected) in [("film", "allowed"), ("series 1", "allowed"), ("x", "403")] {
        let said = check(&control, TokenNeed::Title(name), Some(&token));
        assert!(said.starts_with(expected), "{name}: {said}");
    }
}
