//! Requests to etcd, made once and waited for, at whichever member answers.
//!
//! ```text
//!   request ──▶ member 0 ──no answer──▶ member 1 ──answer──▶ result; the next request begins there
//! ```
//!
//! Each request can be made twice without harm, because the answer of a member may be lost after
//! etcd has carried it out: transactions have conditions, and they put whole records.

use super::access::EtcdUser;
use super::address::{EtcdAddress, EtcdConfig};
use super::watch::EtcdWatch;
use super::wire::{
    AnswerHeader, Condition, EtcdFailure, GrantAnswer, KeepAliveAnswer, KeyValue, RangeAnswer,
    RecordWrite, Streamed, TokenAnswer, TransactionAnswer, after, encoded,
};
use crate::clock::ClockDifference;
use rustls::crypto::ring;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use units::Reason;
use ureq::http::header::DATE;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::WithBody;
use ureq::{Agent, RequestBuilder};

/// A client of one etcd, for the records of one cluster.
pub(crate) struct EtcdClient {
    members: Vec<EtcdAddress>,
    /// The member that answered last.
    current: usize,
    prefix: String,
    requests: Agent,
    watches: Agent,
    user: Option<EtcdUser>,
    /// What stands for the user in requests; `None`: etcd is asked for it.
    token: Option<String>,
    /// How far the clock of the member that answered last is from this one's, if it said its time.
    clock: Option<ClockDifference>,
}

/// A request without a result.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// No member answered, or none that could reach the others.
    #[error("{0}")]
    Unreachable(String),
    /// etcd refused the request.
    #[error("{member} refuses: {message}")]
    Refused { member: EtcdAddress, code: i64, message: String },
    /// A watch without a message for a while.
    #[error("{0} is silent")]
    Silent(EtcdAddress),
}

impl EtcdError {
    /// Whether the request named a lease that there is not.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: NOT_FOUND, .. })
    }
}

/// All records of the cluster.
pub(crate) struct RecordList {
    pub(crate) records: Vec<KeyValue>,
    pub(crate) stamp: Stamp,
}

/// Which etcd answered, and at which revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) etcd: u64,
    pub(crate) revision: u64,
}

/// A lease that was granted, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantedLease {
    pub(crate) id: u64,
    pub(crate) time: Duration,
}

impl From<AnswerHeader> for Stamp {
    fn from(header: AnswerHeader) -> Self {
        Self { etcd: header.cluster_id, revision: header.revision }
    }
}

impl EtcdClient {
    /// A client of these members.
    ///
    /// # Errors
    /// No member, or a machine that trusts no certificate for a member over TLS.
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, Reason> {
        let members = config.endpoints.clone();
        if members.is_empty() {
            return Err("no member of etcd is named".into());
        }
        let is_secure = members.iter().any(EtcdAddress::is_secure);
        let roots = if is_secure { rustls_native_certs::load_native_certs().certs } else { vec![] };
        if is_secure && roots.is_empty() {
            let hint = "install ca-certificates, or name a file with SSL_CERT_FILE";
            return Err(Reason::new("this machine trusts no certificate authority", hint));
        }
        let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
        let (certificate, user) = (config.access.client_certificate()?, config.access.etcd_user()?);
        let shows = certificate.is_some() || user.is_some();
        if shows && let Some(plain) = members.iter().find(|member| !member.is_secure()) {
            let why =
                format!("{plain} is no address over TLS, and --etcd-cert or --etcd-user is given");
            return Err(Reason::new(why, "give https:// addresses in --cluster"));
        }
        let provider = Arc::new(ring::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(RootCerts::from(roots))
            .client_cert(certificate)
            .build();
        let agent = |whole: Option<Duration>, read: Option<Duration>| {
            let config = Agent::config_builder()
                .http_status_as_error(false)
                // The operator has named where etcd is.
                .proxy(None)
                .max_redirects(0)
                .tls_config(tls.clone())
                .timeout_connect(Some(TO_CONNECT))
                .timeout_recv_response(Some(TO_ANSWER))
                .timeout_global(whole)
                .timeout_per_read(read)
                .user_agent("tenuto")
                .build();
            config.new_agent()
        };
        Ok(Self {
            members,
            current: 0,
            prefix: format!("/tenuto/{}/", config.cluster),
            requests: agent(Some(TO_ANSWER), None),
            watches: agent(None, Some(SILENCE)),
            user,
            token: None,
            clock: None,
        })
    }

    /// The beginning of all keys of the cluster.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The member that is asked first.
    pub(crate) fn member(&self) -> &EtcdAddress {
        &self.members[self.current]
    }

    /// How far the clock of the member that answered last is from the clock of this machine.
    pub(crate) fn clock_difference(&self) -> Option<ClockDifference> {
        self.clock
    }

    /// Asks another member from now on.
    pub(crate) fn leave_member(&mut self) {
        self.current = (self.current + 1) % self.members.len();
    }

    /// A record, as of now: not as of what the member has heard.
    pub(crate) fn get(&mut self, key: &str) -> Result<(Option<Vec<u8>>, Stamp), EtcdError> {
        let (record, stamp) = self.record(key)?;
        Ok((record.map(|record| record.value), stamp))
    }

    /// The lease that holds a record, 0 without one; `None` where there is no such record.
    pub(crate) fn lease_of(&mut self, key: &str) -> Result<Option<u64>, EtcdError> {
        Ok(self.record(key)?.0.map(|record| record.lease))
    }

    fn record(&mut self, key: &str) -> Result<(Option<KeyValue>, Stamp), EtcdError> {
        let answer: RangeAnswer = self.ask("/v3/kv/range", &json!({ "key": encoded(key) }))?;
        Ok((answer.kvs.into_iter().next(), answer.header.into()))
    }

    /// All records of the cluster at one revision.
    pub(crate) fn list(&mut self) -> Result<RecordList, EtcdError> {
        let end = encoded(after(&self.prefix));
        let (mut start, mut records) = (self.prefix.clone().into_bytes(), Vec::new());
        let mut stamp: Option<Stamp> = None;
        loop {
            let mut body =
                json!({ "key": encoded(&start), "range_end": end, "limit": PAGE.to_string() });
            if let Some(stamp) = stamp {
                body["revision"] = stamp.revision.to_string().into();
            }
            let page: RangeAnswer = self.ask("/v3/kv/range", &body)?;
            let stamp = *stamp.get_or_insert(page.header.into());
            let last = page.kvs.last().map(|record| record.key.clone());
            records.extend(page.kvs);
            match last {
                Some(last) if page.more => start = [&last[..], &[0]].concat(),
                _ => return Ok(RecordList { records, stamp }),
            }
        }
    }

    /// Whether a key is directly below a prefix, which ends with `/`: no further `/` follows. The
    /// keys of each folder below it are read once at most.
    pub(crate) fn has_direct_key(&mut self, prefix: &str) -> Result<(bool, Stamp), EtcdError> {
        let end = encoded(after(prefix));
        let (mut start, mut stamp): (_, Option<Stamp>) = (prefix.as_bytes().to_vec(), None);
        loop {
            let mut body = json!({
                "key": encoded(&start), "range_end": end, "limit": PAGE.to_string(),
                "keys_only": true,
            });
            if let Some(stamp) = stamp {
                body["revision"] = stamp.revision.to_string().into();
            }
            let page: RangeAnswer = self.ask("/v3/kv/range", &body)?;
            let stamp = *stamp.get_or_insert(page.header.into());
            let folder = |record: &KeyValue| {
                let name = record.key.get(prefix.len()..)?.split(|byte| *byte == b'/').next()?;
                let length = prefix.len() + name.len();
                (length < record.key.len()).then(|| record.key[..length].to_vec())
            };
            let mut folders = page.kvs.iter().map(folder);
            if folders.clone().any(|folder| folder.is_none()) {
                return Ok((true, stamp));
            }
            match folders.next_back().flatten() {
                // The first key behind all of the folder.
                Some(folder) if page.more => start = [&folder[..], b"0"].concat(),
                _ => return Ok((false, stamp)),
            }
        }
    }

    /// Changes records if all conditions are met; returns whether they are.
    pub(crate) fn transact(
        &mut self,
        conditions: &[Condition<'_>],
        writes: &[RecordWrite],
    ) -> Result<bool, EtcdError> {
        let compare: Vec<Value> = conditions.iter().map(Condition::to_json).collect();
        let success: Vec<Value> = writes.iter().map(RecordWrite::to_json).collect();
        let body = json!({ "compare": compare, "success": success });
        let answer: TransactionAnswer = self.ask("/v3/kv/txn", &body)?;
        Ok(answer.succeeded)
    }

    /// A new lease.
    pub(crate) fn grant(&mut self, time: Duration) -> Result<GrantedLease, EtcdError> {
        let body = json!({ "TTL": time.as_secs().to_string() });
        let answer: GrantAnswer = self.ask("/v3/lease/grant", &body)?;
        Ok(GrantedLease { id: answer.id, time: Duration::from_secs(answer.ttl) })
    }

    /// Renews a lease; returns the time for which it is valid from then on, `None` for a lease that
    /// has ended.
    pub(crate) fn keep_alive(&mut self, lease: u64) -> Result<Option<Duration>, EtcdError> {
        let body = json!({ "ID": lease.to_string() });
        let answer: Streamed<KeepAliveAnswer> = match self.ask("/v3/lease/keepalive", &body) {
            Err(EtcdError::Refused { code: NOT_FOUND, .. }) => return Ok(None),
            answer => answer?,
        };
        match (answer.result, answer.error) {
            (Some(KeepAliveAnswer { ttl: ttl @ 1.. }), _) => Ok(Some(Duration::from_secs(ttl))),
            (_, Some(failure)) if failure.code != NOT_FOUND => Err(self.refused(failure)),
            _ => Ok(None),
        }
    }

    /// Ends a lease, and with it the records that it holds.
    pub(crate) fn revoke(&mut self, lease: u64) -> Result<(), EtcdError> {
        let body = json!({ "ID": lease.to_string() });
        match self.ask::<Value>("/v3/lease/revoke", &body) {
            // The path of older ones.
            Err(EtcdError::Refused { code: NOT_FOUND | UNIMPLEMENTED, .. }) => {
                match self.ask::<Value>("/v3/kv/lease/revoke", &body) {
                    Err(EtcdError::Refused { code: NOT_FOUND, .. }) => Ok(()),
                    answer => answer.map(drop),
                }
            }
            answer => answer.map(drop),
        }
    }

    /// All changes of the cluster's records from a revision on.
    pub(crate) fn watch(&mut self, revision: u64) -> Result<EtcdWatch, EtcdError> {
        let body = json!({ "create_request": {
            "key": encoded(&self.prefix),
            "range_end": encoded(after(&self.prefix)),
            "start_revision": revision.to_string(),
        } });
        let member = self.member().clone();
        let url = format!("{member}/v3/watch");
        let failed = |why: String| EtcdError::Unreachable(format!("{member}: {why}"));
        // etcd ends a watch with an old token without saying so.
        self.token = None;
        match self.authenticate() {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => return Err(self.refused(failure)),
            Err(why) => return Err(failed(why)),
        }
        let asked = self.with_token(self.watches.post(url)).send(body.to_string());
        let answer = asked.map_err(|error| failed(error.to_string()))?;
        if !answer.status().is_success() {
            return Err(failed(format!("it answers {}", answer.status())));
        }
        Ok(EtcdWatch::new(member, answer.into_body()))
    }

    fn refused(&self, failure: EtcdFailure) -> EtcdError {
        let EtcdFailure { code, message } = failure;
        EtcdError::Refused { member: self.member().clone(), code, message }
    }

    /// Asks one member after the other until one answers.
    fn ask<T: DeserializeOwned>(&mut self, path: &str, body: &Value) -> Result<T, EtcdError> {
        let body = body.to_string();
        let mut failed = String::new();
        for _ in 0..self.members.len() {
            match self.ask_member(path, &body) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => return Err(self.refused(failure)),
                Err(why) => failed = format!("{}: {why}", self.member()),
            }
            self.leave_member();
        }
        Err(EtcdError::Unreachable(failed))
    }

    /// Asks the current member. An outer error is a member that should be left. A token that has
    /// expired is replaced once.
    fn ask_member<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &str,
    ) -> Result<Result<T, EtcdFailure>, String> {
        for is_last in [self.user.is_none(), true] {
            if let Err(failure) = self.authenticate()? {
                return Ok(Err(failure));
            }
            match self.post(path, body)? {
                Err(EtcdFailure { code: UNAUTHENTICATED, .. }) if !is_last => self.token = None,
                answer => return Ok(answer),
            }
        }
        unreachable!("the last answer is returned")
    }

    /// Asks the current member for a token, where there is a user and none is known.
    fn authenticate(&mut self) -> Result<Result<(), EtcdFailure>, String> {
        let Some(user) = self.user.as_ref().filter(|_| self.token.is_none()) else {
            return Ok(Ok(()));
        };
        let body = json!({ "name": user.name, "password": user.password }).to_string();
        let answer = self.post::<TokenAnswer>("/v3/auth/authenticate", &body)?;
        Ok(answer.map(|answer| self.token = Some(answer.token)).map_err(|failure| {
            let message = format!("the user of --etcd-user: {}", failure.message);
            EtcdFailure { message, ..failure }
        }))
    }

    fn with_token(&self, request: RequestBuilder<WithBody>) -> RequestBuilder<WithBody> {
        let request = request.content_type("application/json");
        match &self.token {
            Some(token) => request.header("Authorization", token),
            None => request,
        }
    }

    fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &str,
    ) -> Result<Result<T, EtcdFailure>, String> {
        let url = format!("{}{path}", self.member());
        let sent = SystemTime::now();
        let asked = self.with_token(self.requests.post(url)).send(body);
        let mut answer = asked.map_err(|error| self.unanswered(&error))?;
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        self.clock = date.and_then(|date| ClockDifference::of(date, sent, SystemTime::now()));
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(LARGEST_ANSWER).read_to_string();
        let text = text.map_err(|error| self.unanswered(&error))?;
        let unclear = |error| format!("its answer ({status}) cannot be read: {error}");
        if status.is_success() {
            return Ok(Ok(serde_json::from_str(&text).map_err(unclear)?));
        }
        if status == 404 {
            return Ok(Err(EtcdFailure { code: NOT_FOUND, message: "not found".to_owned() }));
        }
        // The gateway itself answers in words, such as about the name in a certificate.
        let failure: EtcdFailure = serde_json::from_str(&text)
            .map_err(|_| format!("it answers {status}: {}", first_line(&text)))?;
        if OF_THE_MEMBER.contains(&failure.code) { Err(failure.message) } else { Ok(Err(failure)) }
    }

    /// Why a request has no answer. After one that came in no time the user is given a new token:
    /// a token names a state of etcd, and an etcd that was restored from an earlier one waits for
    /// that state before it answers.
    fn unanswered(&mut self, error: &ureq::Error) -> String {
        if matches!(error, ureq::Error::Timeout(_)) {
            self.token = None;
        }
        error.to_string()
    }
}

/// What an answer that is no JSON says.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(LONGEST_LINE).collect()
}

/// Codes of failures that another member may not have: cancelled, unknown, too late, internal,
/// unavailable.
const OF_THE_MEMBER: [i64; 5] = [1, 2, 4, 13, 14];
/// Code of a lease or a path that there is not.
const NOT_FOUND: i64 = 5;
/// Code of a request that the member does not know.
const UNIMPLEMENTED: i64 = 12;
/// Code of a request whose token the member does not know, or not any more.
const UNAUTHENTICATED: i64 = 16;
/// Time to open a connection to a member, before another one is tried.
const TO_CONNECT: Duration = Duration::from_secs(1);
/// Time for an answer. Electing a leader takes up to 1.6 s on one machine; another member does not
/// answer sooner then.
const TO_ANSWER: Duration = Duration::from_secs(2);
/// Time without a message after which a watch is made anew. Registered nodes put their digests more
/// often.
const SILENCE: Duration = Duration::from_secs(4);
/// Characters of an answer that an error shows.
const LONGEST_LINE: usize = 200;
/// Records of one answer.
const PAGE: u32 = 2000;
/// Bytes of one answer, at most: a page of the largest records.
const LARGEST_ANSWER: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::ClusterName;
    use testkit::etcd::TestEtcd;

    #[test]
    fn a_user_has_a_new_token_after_etcd_was_restored() {
        let etcd = TestEtcd::new();
        etcd.want_user("node", "secret");
        let config = EtcdConfig {
            endpoints: vec![etcd.listen().address().parse().unwrap()],
            cluster: ClusterName::new("c").unwrap(),
            access: <_>::default(),
        };
        let mut client = EtcdClient::new(&config).unwrap();
        let name = "/tenuto/c/name";
        assert!(client.get(name).unwrap_err().to_string().ends_with("user name is empty"));
        client.user = Some(EtcdUser { name: "node".to_owned(), password: "secret".to_owned() });
        etcd.put(name, "backup");
        let backup = etcd.snapshot();
        etcd.put(name, "later");
        let read = |client: &mut EtcdClient| client.get(name).map(|(value, _)| value.unwrap());
        assert_eq!(read(&mut client).unwrap(), b"later");
        etcd.restore(backup);
        let silent = read(&mut client).unwrap_err();
        assert!(matches!(silent, EtcdError::Unreachable(_)), "{silent}");
        assert_eq!(read(&mut client).unwrap(), b"backup");
    }
}
