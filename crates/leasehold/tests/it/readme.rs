//! The README's section about a real database and a real storage account, as it stands.

use std::fs;

use tokio_postgres::{Client, NoTls};

use crate::{
    ground::{Ground, address},
    process::leasehold_in,
};

const README: &str = include_str!("../../../../README.md");
const SQL_README: &str = include_str!("../../../../sql/README.md");
const HEADING: &str = "\n## Point it at a real Postgres and a real storage account\n";

/// The section's blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let section = README.split_once(HEADING).expect("the README has the section").1;
    let section = section.split("\n## ").next().unwrap();
    let opening = format!("\n```{language}\n");
    section.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// `url` for another role, with the password that the README's blocks give, and another database.
fn as_role(url: &str, role: &str, database: &str) -> String {
    let place = url.split_once('@').unwrap().1;
    let host = place.split_once('/').map_or(place, |(host, _)| host);
    format!("postgres://{role}:...@{host}/{database}")
}

#[tokio::test(flavor = "multi_thread")]
async fn its_sql_makes_what_migrate_and_serve_need() {
    let url = address("LEASEHOLD_TEST_POSTGRES");
    let [roles, grants] = blocks("sql")[..] else { panic!("two blocks of SQL") };
    let ground = Ground::unmade(&url, "");
    // A database of its own for the schema's name, and names of its own for the roles, which are the server's.
    let (database, owner, app) =
        (&ground.schema, format!("{}_owner", ground.schema), format!("{}_app", ground.schema));
    let named = |sql: &str| sql.replace("leasehold_owner", &owner).replace("leasehold_app", &app);
    let server = connect(&url).await;
    server.batch_execute(&format!("CREATE DATABASE {database}")).await.unwrap();
    let place = url.split_once('@').map(|(before, _)| before).unwrap();
    let host = as_role(&url, "x", database).split_once('@').unwrap().1.to_owned();
    connect(&format!("{place}@{host}")).await.batch_execute(&named(roles)).await.unwrap();

    let (owner_url, app_url) = (as_role(&url, &owner, database), as_role(&url, &app, database));
    let by = |url: &str| {
        fs::write(ground.dir.path().join("url"), url).unwrap();
        [("LEASEHOLD_POSTGRES__SCHEMA", "leasehold"), ("LEASEHOLD_POSTGRES__MIGRATE", "false")]
    };
    let config = ground.config.as_ref().unwrap().to_str().unwrap();
    leasehold_in(&by(&owner_url), ["migrate", "--config", config]).await.assert(0);
    connect(&owner_url).await.batch_execute(&named(grants)).await.unwrap();

    let replica = ground.start_in("a", &by(&app_url)).await;
    replica.write("acme/u", "k-1").await;
    replica.tenant(["handoff", "acme/u"]).await.assert(0);
    replica.tenant(["forget", "acme/u", "--yes"]).await.assert(0);
    replica.stop().await.assert(0);
    let drop = [
        format!("DROP DATABASE {database} WITH (FORCE)"),
        format!("DROP ROLE {owner}"),
        format!("DROP ROLE {app}"),
    ];
    for sql in drop {
        server.batch_execute(&sql).await.unwrap();
    }
}

#[test]
fn its_grants_are_those_of_the_sql_folder() {
    let of = |text: &'static str| -> Vec<&str> {
        text.lines().filter(|line| line.starts_with("GRANT ")).collect()
    };
    assert_eq!(of(README), of(SQL_README));
}

#[tokio::test(flavor = "multi_thread")]
async fn its_configuration_is_accepted() {
    let [toml] = blocks("toml")[..] else { panic!("one block of TOML") };
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let config = path("leasehold.toml");
    fs::write(&config, toml.replace("/etc/leasehold", dir.path().to_str().unwrap())).unwrap();
    fs::write(path("postgres-url"), "postgres://leasehold_app:...@db.example:5432/ledgers\n").unwrap();
    fs::write(path("derivation.key"), "5e".repeat(32)).unwrap();
    fs::write(path("token"), "eyJ").unwrap();
    // What the platform and the pod say; that the system has roots is not what is tested.
    let root = path("root.pem");
    fs::write(&root, rcgen::generate_simple_self_signed(["root".to_owned()]).unwrap().cert.pem()).unwrap();
    let token = path("token");
    let environment = [
        ("LEASEHOLD_REPLICA", "a"),
        ("LEASEHOLD_POSTGRES__SSLROOTCERT", root.as_str()),
        ("AZURE_CLIENT_ID", "00000000-0000-0000-0000-000000000001"),
        ("AZURE_TENANT_ID", "00000000-0000-0000-0000-000000000002"),
        ("AZURE_FEDERATED_TOKEN_FILE", token.as_str()),
    ];
    leasehold_in(&environment, ["doctor", "--check-config-only", "--config", &config]).await.assert(0);
    // The same without an id is what the text says it is.
    let without = leasehold_in(&environment[1..], ["serve", "--config", &config]).await.assert(2);
    assert!(without.err.contains("`replica`"), "{without:?}");
}
