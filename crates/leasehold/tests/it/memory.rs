//! How much memory a replica takes, whatever is sent to it and asked of it.

mod real_time {
    use bytes::Bytes;
    use leasehold_testkit::{PATIENCE, eventually};
    use reqwest::StatusCode;
    use serde_json::json;
    use tokio::task::JoinSet;

    use crate::{
        data::client,
        ground::{Ground, over_each_pair},
        process::Replica,
    };

    const KEY: &str = "acme/much";
    /// What its requests may hold.
    const MEMORY: &str = "67108864";
    /// What the whole process may come to: that, what its SQL, its uploads and it itself take, and room to spare. What is sent and asked
    /// below is some gigabytes.
    const RESIDENT_MAX_KIB: u64 = 500 * 1024;
    const AT_ONCE: usize = 48;

    /// The most that a process ever had, in KiB.
    fn resident_max(replica: &Replica) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", replica.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Sends as many as that at the same time. Answers how many were let in, and how many were shed: told so, or cut off while they still
    /// sent what nobody reads.
    async fn burst(url: String, body: Bytes) -> (usize, usize) {
        let mut sent = JoinSet::new();
        for _ in 0..AT_ONCE {
            let request = client().post(&url).header("content-type", "application/json").body(body.clone());
            sent.spawn(async move {
                let mut answered = request.send().await.ok()?;
                // Read as it comes, and kept nowhere: the memory of the tests is not what is looked at.
                while answered.chunk().await.is_ok_and(|chunk| chunk.is_some()) {}
                Some(answered.status())
            });
        }
        let answered = sent.join_all().await;
        let done = answered.iter().flatten().filter(|status| status.is_success()).count();
        let is_shed = |status: &&Option<StatusCode>| status.is_none_or(|status| status == 429);
        let shed = answered.iter().filter(is_shed).count();
        assert_eq!(done + shed, AT_ONCE, "{answered:?}");
        assert!(answered.contains(&Some(StatusCode::TOO_MANY_REQUESTS)), "somebody was told: {answered:?}");
        (done, shed)
    }

    async fn a_replica_stays_within_its_memory(ground: Ground) {
        let environment = [
            ("LEASEHOLD_LIMITS__MEMORY_BYTES_MAX", MEMORY),
            ("LEASEHOLD_LIMITS__STATEMENT_TIME_MAX", "60s"),
            ("LEASEHOLD_SNAPSHOT__UNFLUSHED_BYTES_MAX", "0"),
            ("LEASEHOLD_SNAPSHOT__EVERY", "0s"),
        ];
        let a = ground.start_in("a", &environment).await;
        eventually(PATIENCE, "it is ready", async || a.is_ready().await).await;
        a.write(KEY, "one").await;

        // Bodies of eight megabytes.
        let event = json!({ "kind": "k", "actor": "a", "payload": "x".repeat(250_000) }).to_string();
        let body = format!("[{}]", vec![event; 33].join(","));
        let (done, shed) = burst(a.url(KEY, "/events"), body.into()).await;
        assert!(done > 0 && shed > 0, "{done} done, {shed} shed");
        let after_bodies = resident_max(&a);

        // Results of fourteen, which are as much again as JSON.
        let sql = "with recursive n(x) as (select 1 union all select x + 1 from n where x < 14) \
            select hex(zeroblob(500000)) from n";
        let (done, shed) = burst(a.url(KEY, "/query"), json!({ "sql": sql }).to_string().into()).await;
        assert!(done > 0 && shed > 0, "{done} done, {shed} shed");
        let after_results = resident_max(&a);

        // Bodies that would be thirty times as much once they are read.
        let numbers = format!("{{\"sql\":\"select 1\",\"params\":[{}0]}}", "0,".repeat(3_900_000));
        let refused = client()
            .post(a.url(KEY, "/query"))
            .header("content-type", "application/json")
            .body(numbers)
            .send()
            .await
            .unwrap();
        assert_eq!(refused.status(), 413);

        // Sorts of four hundred megabytes, side by side.
        let sql = "with recursive n(x, y) as (select 1, hex(randomblob(2000)) union all \
            select x + 1, hex(randomblob(2000)) from n where x < 100000) \
            select max(at) from (select row_number() over (order by y) as at from n)";
        let sorts = (0..4).map(|_| client().post(a.url(KEY, "/query")).json(&json!({ "sql": sql })).send());
        for sorted in sorts.collect::<JoinSet<_>>().join_all().await {
            assert_eq!(sorted.unwrap().status(), 200);
        }
        let at_last = resident_max(&a);
        println!("{after_bodies} KiB after the bodies, {after_results} after the results, {at_last} at last");
        assert!(at_last < RESIDENT_MAX_KIB, "{after_bodies}, {after_results}, {at_last} KiB");
        assert_eq!(a.stop().await.code, Some(0));
    }

    over_each_pair!(a_replica_stays_within_its_memory);
}
