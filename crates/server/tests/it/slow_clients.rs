//! Clients that take their time: each is cut when it has had enough of it, and nobody else notices.

mod real_time {
    use std::{sync::Arc, time::Duration};

    use leasehold_server::Config;
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpSocket, TcpStream},
    };

    use crate::{
        served::{Served, eventually, path_of, pause, soon},
        tls::{
            authority::Authority,
            relay::{connect_by, trusting},
        },
    };

    const TENANT: &str = "acme/user-1";
    /// What a client is given in these tests.
    const SHORT: Duration = Duration::from_millis(400);
    /// What it is given where another bound is to be the one that counts.
    const LONG: Duration = Duration::from_secs(60);

    fn patient(config: &mut Config) {
        config.limits.head_time_max = LONG;
        config.limits.keep_alive_time_max = LONG;
        config.limits.stall_time_max = LONG;
        config.limits.body_time_max = LONG;
    }

    async fn connect(served: &Served) -> TcpStream {
        TcpStream::connect(served.url.strip_prefix("http://").unwrap()).await.unwrap()
    }

    /// Whatever still comes until the other side ends the connection, one way or the other.
    async fn rest(stream: &mut TcpStream) -> String {
        let mut rest = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(len @ 1..) = soon("the end of the connection", stream.read(&mut piece)).await {
            rest.extend_from_slice(&piece[..len]);
        }
        String::from_utf8_lossy(&rest).into_owned()
    }

    async fn cut(served: &Served, reason: &str) -> u64 {
        served.metric(&format!("leasehold_connections_cut_total{{reason=\"{reason}\"}}")).await
    }

    #[tokio::test]
    async fn a_head_that_comes_byte_by_byte_is_cut() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.head_time_max = SHORT;
        })
        .await;
        let mut stream = connect(&served).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        let mut answer = [0; 15];
        soon("an answer", stream.read_exact(&mut answer)).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        pause(SHORT * 2).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").await.unwrap();
        let (mut reading, mut writing) = stream.into_split();
        let drips = tokio::spawn(async move {
            // Progress buys no time.
            while writing.write_all(b"x").await.is_ok() {
                pause(SHORT / 10).await;
            }
        });
        let mut piece = [0; 4096];
        let mut read = Vec::new();
        while let Ok(len @ 1..) = soon("the cut", reading.read(&mut piece)).await {
            read.extend_from_slice(&piece[..len]);
        }
        drips.abort();
        assert!(
            !String::from_utf8_lossy(&read).contains("HTTP/1.1 200"),
            "the second request was not answered"
        );
        assert_eq!(cut(&served, "head").await, 1);
    }

    #[tokio::test]
    async fn a_connection_that_asks_nothing_is_closed_and_one_that_is_answered_is_not() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.head_time_max = SHORT;
            config.limits.keep_alive_time_max = SHORT;
            config.follow.heartbeat_every = SHORT / 2;
        })
        .await;
        served.append(TENANT, "a").await;
        let mut follower = connect(&served).await;
        let path = path_of(TENANT);
        let asks =
            format!("GET {path}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n");
        follower.write_all(asks.as_bytes()).await.unwrap();

        let mut silent = connect(&served).await;
        assert_eq!(rest(&mut silent).await, "", "nothing was asked");
        let mut idle = connect(&served).await;
        idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
        assert!(rest(&mut idle).await.starts_with("HTTP/1.1 200"));

        // Heartbeats go on for many times as long as anything else may wait.
        let mut beats = 0;
        let mut piece = [0; 4096];
        while beats < 8 {
            let len = soon("a heartbeat", follower.read(&mut piece)).await.unwrap();
            assert!(len > 0, "the stream was cut after {beats} heartbeats");
            beats += String::from_utf8_lossy(&piece[..len]).matches("\n:").count();
        }
        assert_eq!(cut(&served, "head").await + cut(&served, "stalled").await, 0);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_answered_and_holds_no_place() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.body_time_max = SHORT;
            config.limits.in_flight_per_tenant_max = 1;
        })
        .await;
        let mut stream = connect(&served).await;
        let head = format!(
            "POST {}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{",
            path_of(TENANT)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("\"timeout\""), "{answer}");
        served.append(TENANT, "a").await;
    }

    /// A connection that takes in as little as the system allows.
    async fn narrow(served: &Served) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(served.address).await.unwrap()
    }

    /// The waits stand above the transport: what TLS keeps of an answer is no answer that was taken.
    #[tokio::test]
    async fn over_tls_an_answer_that_nobody_takes_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::in_dir(dir.path());
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.stall_time_max = SHORT;
            authority.vouch_for("a", config);
        })
        .await;
        served.append(TENANT, "a").await;
        let sql = json!({ "sql": "SELECT hex(zeroblob(1900000)) FROM (VALUES (1), (2), (3))" }).to_string();
        let trusting = Arc::new(trusting(&authority.ca_file()));
        let mut stream = connect_by(narrow(&served).await, trusting).await.unwrap();
        let asks = format!(
            "POST {}/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{sql}",
            path_of(TENANT),
            sql.len()
        );
        stream.write_all(asks.as_bytes()).await.unwrap();
        eventually("the cut", async || cut(&served, "stalled").await == 1).await;
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_is_given_up() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.stall_time_max = SHORT;
        })
        .await;
        served.append(TENANT, "a").await;
        let sql = json!({ "sql": "SELECT hex(zeroblob(1900000)) FROM (VALUES (1), (2), (3))" }).to_string();
        let path = path_of(TENANT);
        let mut stream = narrow(&served).await;
        let asks = format!(
            "POST {path}/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{sql}",
            sql.len()
        );
        stream.write_all(asks.as_bytes()).await.unwrap();
        eventually("the cut", async || cut(&served, "stalled").await == 1).await;
        let got = rest(&mut stream).await;
        assert!(got.len() < 11_400_000, "{}", got.len());
    }

    /// What is read slowly is no stall, and not idle either: hyper has all of the answer long before the client.
    #[tokio::test]
    async fn an_answer_that_is_taken_slowly_is_given_whole() {
        const PIECE: usize = 512 * 1024;
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.head_time_max = SHORT;
            config.limits.keep_alive_time_max = SHORT;
        })
        .await;
        served.append(TENANT, "a").await;
        let sql = json!({ "sql": "SELECT hex(zeroblob(1900000)) FROM (VALUES (1), (2), (3))" }).to_string();
        let mut stream = narrow(&served).await;
        let asks = format!(
            "POST {}/query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{sql}",
            path_of(TENANT),
            sql.len()
        );
        stream.write_all(asks.as_bytes()).await.unwrap();
        let mut piece = vec![0; PIECE];
        let mut got = 0;
        while got < 11_400_000 {
            let mut in_piece = 0;
            while in_piece < PIECE && got < 11_400_000 {
                let len = soon("more", stream.read(&mut piece)).await.unwrap();
                assert!(len > 0, "cut after {got} bytes");
                (in_piece, got) = (in_piece + len, got + len);
            }
            pause(SHORT / 4).await;
        }
        assert_eq!(cut(&served, "stalled").await + cut(&served, "head").await, 0);
    }

    #[tokio::test]
    async fn a_follower_that_does_not_read_is_given_up_and_its_place_comes_back() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.stall_time_max = SHORT;
            config.follow.followers_max = 1;
        })
        .await;
        let path = path_of(TENANT);
        let big = json!({ "kind": "a", "actor": "ada", "payload": "x".repeat(200_000) });
        for _ in 0..50 {
            served.post_json(&format!("{path}/events"), &big).await.ok(201);
        }
        let mut stream = narrow(&served).await;
        let asks =
            format!("GET {path}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n");
        stream.write_all(asks.as_bytes()).await.unwrap();
        eventually("the cut", async || cut(&served, "stalled").await == 1).await;
        eventually("its place", async || served.metric("leasehold_followers").await == 0).await;
        drop(stream);
    }

    #[tokio::test]
    async fn one_address_has_so_many_connections_and_others_are_served() {
        let served = Served::alone_with(|config| {
            patient(config);
            config.limits.connections_per_peer_max = 3;
        })
        .await;
        // One is the client's that asks for the metrics.
        served.get("/healthz").await.ok(200);
        let first = connect(&served).await;
        let _second = connect(&served).await;
        let mut third = connect(&served).await;
        assert_eq!(rest(&mut third).await, "");
        assert_eq!(cut(&served, "crowded").await, 1);
        assert_eq!(served.metric("leasehold_connections_open").await, 3);
        drop(first);
        eventually("room", async || served.metric("leasehold_connections_open").await == 2).await;
        let mut fourth = connect(&served).await;
        fourth
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            .await
            .unwrap();
        assert!(rest(&mut fourth).await.starts_with("HTTP/1.1 200"));
    }
}
