//! A blob service that lies: it passes everything on to Azurite, and says something else in one respect.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, Response, StatusCode, header},
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::patient::{Patient, account};

/// In what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// What was deleted is listed among the deleted, as with soft delete.
    KeepsDeleted,
    /// The same as a version.
    KeepsVersions,
    /// A put of a name that is taken is said to have created it.
    TakesEveryPut,
    /// A delete is answered and nothing is deleted.
    DeletesNothing,
    /// A listing shows nothing.
    ListsNothing,
    /// Anybody may read the container.
    IsPublic,
    /// Nobody may delete in the container.
    IsHeld,
    /// A read is never answered.
    NeverReads,
}

/// The service. It ends with this.
pub(super) struct Front {
    addr: SocketAddr,
    serving: JoinHandle<()>,
}

struct Passing {
    lie: Lie,
    target: String,
    client: reqwest::Client,
}

impl Front {
    pub(super) async fn start(lie: Lie) -> Self {
        let endpoint = account("BlobEndpoint");
        let (target, _) = endpoint.trim_start_matches("http://").split_once('/').unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let passing = Arc::new(Passing { lie, target: format!("http://{target}"), client });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let app = Router::new().fallback(pass).with_state(passing);
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { addr, serving }
    }

    /// Lets a patient's images go through it.
    pub(super) fn before(&self, patient: &mut Patient) {
        patient.set("AZURE__ENDPOINT", &format!("http://{}/{}", self.addr, account("AccountName")));
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn pass(State(passing): State<Arc<Passing>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let target = parts.uri.path_and_query().unwrap().as_str().to_owned();
    let (is_listing, lists_kept) = (target.contains("comp=list"), target.contains("deleted"));
    if parts.method == Method::DELETE && passing.lie == Lie::DeletesNothing {
        return said(StatusCode::ACCEPTED, HeaderMap::new(), Bytes::new());
    }
    if parts.method == Method::GET && !is_listing && passing.lie == Lie::NeverReads {
        std::future::pending::<()>().await;
    }
    let body = axum::body::to_bytes(body, 1024 * 1024).await.unwrap();
    let mut headers = parts.headers;
    headers.remove(header::HOST);
    headers.remove(header::CONTENT_LENGTH);
    let url = format!("{}{target}", passing.target);
    let asked = passing.client.request(parts.method.clone(), url).headers(headers).body(body);
    let answer = asked.send().await.unwrap();
    let (mut status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONNECTION);
    let mut body = answer.bytes().await.unwrap();
    match passing.lie {
        Lie::KeepsDeleted if lists_kept => body = listing(&target, "<Deleted>true</Deleted>"),
        Lie::KeepsVersions if lists_kept => {
            body = listing(&target, "<VersionId>2026-01-01T00:00:00.0000000Z</VersionId>");
        }
        Lie::ListsNothing if is_listing => body = listing_of(""),
        Lie::TakesEveryPut if parts.method == Method::PUT && status == StatusCode::CONFLICT => {
            (status, body) = (StatusCode::CREATED, Bytes::new());
        }
        Lie::IsPublic => {
            headers.insert("x-ms-blob-public-access", "container".parse().unwrap());
        }
        Lie::IsHeld if target.contains("restype=container") => {
            headers.insert("x-ms-has-legal-hold", "true".parse().unwrap());
        }
        _ => {}
    }
    if parts.method != Method::HEAD {
        headers.remove(header::CONTENT_LENGTH);
    }
    said(status, headers, body)
}

fn said(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Response<Body> {
    // What the client wants of every answer to a put or a delete.
    for (name, value) in [
        ("etag", "\"0x1\""),
        ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("x-ms-request-id", "00000000-0000-0000-0000-000000000000"),
        ("x-ms-request-server-encrypted", "true"),
        ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
    ] {
        let name = header::HeaderName::from_static(name);
        headers.entry(name).or_insert(header::HeaderValue::from_static(value));
    }
    let mut response = Response::new(Body::from(body));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// A page with the one object that was asked for by its whole name, `more` being what its entry says beside that.
fn listing(target: &str, more: &str) -> Bytes {
    let (_, rest) = target.split_once("prefix=").unwrap();
    let name = rest.split('&').next().unwrap().replace("%2F", "/");
    listing_of(&format!(
        "<Blob><Name>{name}</Name>{more}<Properties><Creation-Time>Thu, 01 Jan 2026 00:00:00 GMT</Creation-Time>\
         <Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified><Etag>0x1</Etag><Content-Length>16</Content-Length>\
         <Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
    ))
}

fn listing_of(blobs: &str) -> Bytes {
    let page = format!(
        r#"<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://abc.example/"
        ContainerName="images"><Blobs>{blobs}</Blobs><NextMarker /></EnumerationResults>"#
    );
    page.into()
}
