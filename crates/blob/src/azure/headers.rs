//! What the client adds to a request and a strict server refuses.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core::{Context, Policy, PolicyResult, Request, headers::RANGE_GET_CONTENT_CRC64};

/// Takes the checksum header from reads of short ranges, before the request is signed: it asks for a header that nothing reads,
/// and Azurite answers it with a 500.
#[derive(Debug)]
pub(super) struct DropChecksumRequest;

#[async_trait]
impl Policy for DropChecksumRequest {
    async fn send(&self, context: &Context, request: &mut Request, next: &[Arc<dyn Policy>]) -> PolicyResult {
        // Headers cannot be taken away, so the request is made again without it.
        let mut kept = Request::new(request.url().clone(), *request.method());
        for (name, value) in request.headers().iter().filter(|(name, _)| **name != RANGE_GET_CONTENT_CRC64) {
            kept.insert_header(name.clone(), value.clone());
        }
        kept.set_body(request.body().clone());
        *request = kept;
        let (first, rest) = next.split_first().ok_or_else(|| {
            azure_core::Error::message(azure_core::error::ErrorKind::Other, "a policy with none behind it")
        })?;
        first.send(context, request, rest).await
    }
}
