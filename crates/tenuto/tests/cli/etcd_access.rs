//! Nodes, directors and commands at a real etcd that takes only certificates of its authority, and
//! only users that it knows.

use crate::directed::{Part, etcd_command, eventually, free_address};
use crate::program::{TestDir, program};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Writes an authority, etcd's certificate, that of a client and one with a Common Name: `ca.pem`,
/// `etcd.pem`, `node.pem`, `named.pem`, and the keys beside them.
fn write_certificates(dir: &TestDir) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    dir.write("ca.pem", params.self_signed(&key).expect("a certificate").pem());
    let issuer = Issuer::new(params, key);
    for name in ["etcd", "node", "named"] {
        let key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("a name");
        if name == "node" {
            params.distinguished_name = DistinguishedName::new();
        }
        // The gateway of etcd shows its certificate to etcd.
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        dir.write(&format!("{name}.pem"), certificate.pem());
        write_own(dir, &format!("{name}.key"), &key.serialize_pem());
    }
}

fn write_own(dir: &TestDir, name: &str, text: &str) {
    dir.write(name, text);
    std::fs::set_permissions(dir.path(name), PermissionsExt::from_mode(0o600)).expect("ours");
}

fn start_etcd(dir: &TestDir, address: &str, peers: &str) -> Part {
    let mut command = etcd_command(dir, "etcd", "https", address, &format!("etcd=http://{peers}"));
    command.current_dir(dir.path("")).args(["--client-cert-auth", "--trusted-ca-file", "ca.pem"]);
    command.args(["--cert-file", "etcd.pem", "--key-file", "etcd.key"]);
    let part = Part::new(command, address.to_owned());
    eventually("etcd answers", || {
        ask(dir, address, "/v3/maintenance/status", &json!({})).is_some()
    });
    part
}

/// The answer of etcd to a client with a certificate; `None`: none.
fn ask(dir: &TestDir, address: &str, path: &str, body: &Value) -> Option<Value> {
    let mut curl = Command::new("curl");
    curl.current_dir(dir.path("")).args(["-sf", "--cacert", "ca.pem", "--cert", "node.pem"]);
    curl.args(["--key", "node.key", "-d", &body.to_string(), &format!("https://{address}{path}")]);
    let output = curl.output().expect("curl runs");
    serde_json::from_slice(&output.stdout).ok()
}

#[test]
fn an_etcd_may_want_a_certificate_and_a_user() {
    testkit::needs!(Program("etcd"), Program("curl"));
    let dir = TestDir::new();
    dir.ok("format n1.store --size 32MiB");
    write_certificates(&dir);
    write_own(&dir, "secret", &"s".repeat(32));
    write_own(&dir, "user", "tenuto:pass:word\n");
    write_own(&dir, "wrong", "tenuto:word\n");
    let (client, peers) = (free_address(), free_address());
    let mut member = start_etcd(&dir, &client, &peers);
    // The keys of the cluster, from `/tenuto/c/` to `/tenuto/c0`.
    let keys = json!({ "permType": "READWRITE", "key": "L3RlbnV0by9jLw==", "range_end": "L3RlbnV0by9jMA==" });
    for (path, body) in [
        ("user/add", json!({ "name": "root", "password": "root" })),
        ("role/add", json!({ "name": "root" })),
        ("user/grant", json!({ "user": "root", "role": "root" })),
        ("user/add", json!({ "name": "tenuto", "password": "pass:word" })),
        ("role/add", json!({ "name": "tenuto" })),
        ("role/grant", json!({ "name": "tenuto", "perm": keys })),
        ("user/grant", json!({ "user": "tenuto", "role": "tenuto" })),
        ("enable", json!({})),
    ] {
        let answer = ask(&dir, &client, &format!("/v3/auth/{path}"), &body);
        assert!(answer.is_some(), "{path}");
    }
    member.kill();
    copy_data(&dir, "etcd", "backup");
    let mut member = start_etcd(&dir, &client, &peers);

    let run = |line: &str| {
        let mut command = program(&dir.path(""));
        command.env("SSL_CERT_FILE", dir.path("ca.pem"));
        command.args(line.split_whitespace());
        command
    };
    let cluster = format!("--cluster https://{client} --cluster-name c");
    let shown = "--etcd-cert node.pem --etcd-key node.key --etcd-user user";
    for (access, wanted) in [
        ("", "--etcd-cert and --etcd-key"),
        ("--etcd-user user", "--etcd-cert and --etcd-key"),
        ("--etcd-cert node.pem --etcd-key node.key", "etcdserver: user name is empty"),
        ("--etcd-cert node.pem --etcd-key node.key", "(--etcd-user)"),
        (
            "--etcd-cert named.pem --etcd-key named.key --etcd-user user",
            "CommonName of client sending a request against gateway will be ignored",
        ),
        (
            "--etcd-cert node.pem --etcd-key node.key --etcd-user wrong",
            "the user of --etcd-user: etcdserver: authentication failed",
        ),
        ("--etcd-cert node.pem --etcd-key named.key", "is not the key of the certificate"),
        ("--etcd-cert secret --etcd-key node.key", "secret has no certificate"),
    ] {
        let output = run(&format!("cluster nodes {cluster} {access}")).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(wanted), "{access}: {said}");
    }
    let address = free_address();
    let node = run(&format!(
        "serve n1.store --listen {address} --node n1 --node-address http://{address} \
         --cluster-secret secret {cluster} {shown}"
    ));
    let node = Part::new(node, address);
    let address = free_address();
    let line = format!("director --listen {address} --cluster-secret secret {cluster} {shown}");
    let director = Part::new(run(&line), address);
    let all_is_well = || {
        let status = director.json("/status");
        let nodes = status["nodes"].as_array().map(Vec::len);
        let registered = node.cluster()["registered"] == true && node.cluster()["error"].is_null();
        registered && nodes == Some(1) && status["etcd"]["error"].is_null()
    };
    eventually("the node is registered, and the director knows it", all_is_well);
    let listed = run(&format!("cluster nodes --json {cluster} {shown}")).output().expect("it runs");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("a report");
    assert_eq!(listed["nodes"][0]["name"], "n1", "{listed}");

    // An etcd that was started again does not know the tokens that it gave.
    let writes = || node.cluster()["writes"].as_u64();
    member.kill();
    eventually("the director notices it", || !director.json("/status")["etcd"]["error"].is_null());
    let before = writes();
    let mut member = start_etcd(&dir, &client, &peers);
    eventually("all is well again", || all_is_well() && writes() > before);

    // One that was restored waits for the state in which a token was given.
    member.kill();
    std::fs::remove_dir_all(dir.path("etcd")).expect("ours");
    copy_data(&dir, "backup", "etcd");
    eventually("the director notices it", || !director.json("/status")["etcd"]["error"].is_null());
    let before = writes();
    let _member = start_etcd(&dir, &client, &peers);
    eventually("all is well again", || all_is_well() && writes() > before);
}

/// Copies what an etcd that has ended has in this folder.
fn copy_data(dir: &TestDir, from: &str, to: &str) {
    for part in ["member/snap", "member/wal"] {
        let (from, to) = (dir.path(from).join(part), dir.path(to).join(part));
        std::fs::create_dir_all(&to).expect("ours");
        for file in std::fs::read_dir(from).expect("etcd's").map_while(Result::ok) {
            std::fs::copy(file.path(), to.join(file.file_name())).expect("ours");
        }
    }
    // etcd wants it so.
    std::fs::set_permissions(dir.path(to), PermissionsExt::from_mode(0o700)).expect("ours");
}
