//! Who may use the admin API.
//!
//! | operation | with `--tokens` | without |
//! |---|---|---|
//! | the OpenAPI document | everybody | everybody |
//! | reads | an operator | whoever can connect, as for `/status` |
//! | changes | an operator | nobody |
//!
//! Without tokens nothing tells the operator from another user of the machine, or from the clients
//! of a proxy on it: both connect from a loopback address. The control socket tells them apart, and
//! takes the same requests.

use super::operations::Operation;
use super::problem::Problem;
use crate::access::TokenNeed;
use crate::http::{HttpRequest, Response};
use crate::shared::Shared;
use std::net::IpAddr;
use std::time::SystemTime;

/// The response to a client at `peer` that may not do this; `None` if it may.
pub(crate) fn denied(
    shared: &Shared,
    operation: &Operation,
    request: &HttpRequest,
    peer: IpAddr,
) -> Option<Response> {
    if operation.is_public() {
        return None;
    }
    if !shared.access.has_keys() && operation.is_change() {
        let message = "this server has no tokens, by which it would know its operator";
        let hint = "use the commands of tenuto on its machine; or start it with --tokens KEYS and \
                    send a token of `tenuto token KEYS --operator`";
        return Some(Problem::new(403, "operator-unknown", message, hint).into_response());
    }
    let token = request.token.as_deref();
    let why = shared.access.check(TokenNeed::Server, token, peer, SystemTime::now()).err()?;
    let (status, code) = why.status();
    let hint = "make one with `tenuto token KEYS --operator`, and send it as Authorization: Bearer";
    let mut response = Problem::new(status, code, why.to_string(), hint).into_response();
    response.head.add("WWW-Authenticate", why.challenge());
    Some(response)
}
