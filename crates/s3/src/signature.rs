//! AWS Signature Version 4 in the `Authorization` header of a request:
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>.
//!
//! A signature in the address (a presigned URL) would be valid for anyone who reads the access log
//! of a proxy. This one is in a header, which logs do not contain. The payload is not signed:
//! hashing it would cost the processor time of the measurement. Requests to other services of AWS,
//! which are signed here for those who send them, have their payload signed.
//!
//! ```text
//!   method, path, query, headers ─SHA-256─▶ text to sign ─┐
//!   secret ─HMAC─ day ─HMAC─ region ─HMAC─ s3 ─────▶ key ─┴─HMAC─▶ signature
//! ```

use hmac::{Hmac, KeyInit, Mac};
use rusty_s3::Method;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};
use units::to_hex;
use ureq::http::Uri;

/// The credentials that sign requests to one region.
#[derive(Clone)]
pub struct Signer {
    /// The access key's identifier.
    pub(crate) key: String,
    /// The secret of the key.
    pub(crate) secret: String,
    /// The session token of temporary credentials.
    pub(crate) token: Option<String>,
    /// The region that the signature is valid for.
    pub(crate) region: String,
}

impl Signer {
    /// Credentials of this region: the access key's identifier and its secret.
    pub fn new(region: String, key: String, secret: String) -> Self {
        Self { key, secret, token: None, region }
    }

    /// The headers that sign a POST of `body` to a service other than S3. `Host` and
    /// `Content-Type` are signed, too, and left to the HTTP client. In the path of `url` are
    /// unreserved characters and slashes alone: what others are signed as differs by the service.
    pub fn headers_of_post(
        &self,
        service: &str,
        url: &Uri,
        (content_type, body): (&str, &[u8]),
        now: SystemTime,
    ) -> Vec<(&'static str, String)> {
        let time = basic_utc(now);
        let host = url.authority().map_or("", |authority| authority.as_str()).to_owned();
        let mut headers = vec![
            ("content-type", content_type.to_owned()),
            ("host", host),
            (PAYLOAD_HASH, to_hex(&Sha256::digest(body))),
            ("x-amz-date", time.clone()),
        ];
        let request = Signed { method: "POST", url, headers: &headers };
        let authorization = self.authorization(&request, &time, service);
        headers.drain(..2);
        headers.push(("authorization", authorization));
        headers
    }

    /// The headers that sign a request to `url`. The `Host` header is signed too, and left to the
    /// HTTP client, which makes it from the URL.
    pub(crate) fn headers(
        &self,
        method: Method,
        url: &Uri,
        now: SystemTime,
    ) -> Vec<(&'static str, String)> {
        let time = basic_utc(now);
        let mut headers = vec![
            ("host", url.authority().map_or("", |authority| authority.as_str()).to_owned()),
            (PAYLOAD_HASH, UNSIGNED_PAYLOAD.to_owned()),
            ("x-amz-date", time.clone()),
        ];
        headers.extend(self.token.clone().map(|token| ("x-amz-security-token", token)));
        let request = Signed { method: method.to_str(), url, headers: &headers };
        let authorization = self.authorization(&request, &time, "s3");
        headers.remove(0);
        headers.push(("authorization", authorization));
        headers
    }

    /// The value of the `Authorization` header. `time` is the request's time in the basic format.
    fn authorization(&self, request: &Signed<'_>, time: &str, service: &str) -> String {
        self.authorization_of(&request.canonical(), &request.names(), time, service)
    }

    /// The value of the `Authorization` header for a request in its canonical form, of which the
    /// headers of these `names` are signed.
    fn authorization_of(&self, canonical: &str, names: &str, time: &str, service: &str) -> String {
        let day = &time[..DAY];
        let scope = format!("{day}/{}/{service}/aws4_request", self.region);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", to_hex(&Sha256::digest(canonical)));
        let secret = format!("AWS4{}", self.secret).into_bytes();
        let steps = [day, &self.region, service, "aws4_request", &text];
        let signature = steps.iter().fold(secret, |key, step| hmac(&key, step));
        format!(
            "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={}",
            self.key,
            to_hex(&signature)
        )
    }
}

/// The signed part of a request.
struct Signed<'a> {
    method: &'a str,
    url: &'a Uri,
    /// The signed headers in alphabetical order, in lower case.
    headers: &'a [(&'a str, String)],
}

impl Signed<'_> {
    /// The request in the form that both sides hash.
    fn canonical(&self) -> String {
        let mut query: Vec<String> = self.url.query().map_or(Vec::new(), |query| {
            let pairs = query.split('&').filter(|pair| !pair.is_empty());
            pairs.map(|pair| pair.to_owned() + if pair.contains('=') { "" } else { "=" }).collect()
        });
        query.sort_unstable();
        let mut text = format!("{}\n{}\n{}\n", self.method, self.url.path(), query.join("&"));
        for (name, value) in self.headers {
            let _ = writeln!(text, "{name}:{}", value.trim());
        }
        let header = self.headers.iter().find(|(name, _)| *name == PAYLOAD_HASH);
        let hash = header.map_or(EMPTY_PAYLOAD, |(_, hash)| hash);
        let _ = write!(text, "\n{}\n{hash}", self.names());
        text
    }

    fn names(&self) -> String {
        self.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
    }
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A time in the basic format of ISO 8601: `20130524T000000Z`.
fn basic_utc(at: SystemTime) -> String {
    let unix = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let minute = units::show::moment(unix).replace(['-', ':'], "").replace(' ', "T");
    format!("{minute}{:02}Z", unix % 60)
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The characters of the day in a time of the basic format.
const DAY: usize = 8;

const PAYLOAD_HASH: &str = "x-amz-content-sha256";
const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// SHA-256 of no bytes.
const EMPTY_PAYLOAD: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A URL or its path, the signed headers, and the signature.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

    /// The signature of a request without a payload, at `time`.
    fn signature(signer: &Signer, url: &str, headers: &[(&str, &str)], time: &str) -> String {
        let (url, service) = match url.contains(".s3.") {
            true => (url, "s3"),
            false => (url, if url.contains("iam.") { "iam" } else { "service" }),
        };
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let request = Signed { method: "GET", url: &url.parse().unwrap(), headers: &headers };
        let header = signer.authorization(&request, time, service);
        header.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    fn signer(key: &str, secret: &str) -> Signer {
        let region = "us-east-1".to_owned();
        Signer { key: key.to_owned(), secret: secret.to_owned(), token: None, region }
    }

    /// The examples of the S3 documentation.
    #[test]
    fn requests_are_signed_as_in_the_documentation_of_s3() {
        let signer = signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let time = "20130524T000000Z";
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let standard = [(PAYLOAD_HASH, EMPTY_PAYLOAD), ("x-amz-date", time)];
        let [hash, date] = standard;
        let cases: [Case<'_>; 3] = [
            (
                "test.txt",
                &[host, ("range", "bytes=0-9"), hash, date],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "?lifecycle",
                &[host, hash, date],
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "?prefix=J&max-keys=2",
                &[host, hash, date],
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ];
        for (path, headers, wanted) in cases {
            let url = format!("https://examplebucket.s3.amazonaws.com/{path}");
            assert_eq!(signature(&signer, &url, headers, time), wanted, "{path}");
        }
    }

    /// `get-vanilla` and its variants of the test suite for Signature Version 4, and the example of
    /// IAM.
    #[test]
    fn requests_are_signed_as_in_the_test_suite_of_aws() {
        let signer = signer("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let time = "20150830T123600Z";
        let vanilla = [("host", "example.amazonaws.com"), ("x-amz-date", time)];
        let iam = [
            ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("host", "iam.amazonaws.com"),
            ("x-amz-date", time),
        ];
        let cases: [Case<'_>; 3] = [
            (
                "https://example.amazonaws.com/",
                &vanilla,
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                &vanilla,
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                &iam,
                "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            ),
        ];
        for (url, headers, wanted) in cases {
            assert_eq!(signature(&signer, url, headers, time), wanted, "{url}");
        }
    }

    /// `post-x-www-form-urlencoded` of the test suite, whose payload is signed.
    #[test]
    fn a_payload_is_signed_as_in_the_test_suite_of_aws() {
        let signer = signer("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let (url, time) = ("https://example.amazonaws.com/".parse().unwrap(), "20150830T123600Z");
        let content_type = "application/x-www-form-urlencoded";
        let mut headers = vec![
            ("content-type", content_type.to_owned()),
            ("host", "example.amazonaws.com".to_owned()),
            ("x-amz-date", time.to_owned()),
        ];
        let payload = to_hex(&Sha256::digest("Param1=value1"));
        let request = Signed { method: "POST", url: &url, headers: &headers };
        // The suite does not send the hash, and a request does.
        let canonical = request.canonical().replace(EMPTY_PAYLOAD, &payload);
        let header = signer.authorization_of(&canonical, &request.names(), time, "service");
        let wanted = "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert_eq!(header.rsplit_once("Signature=").unwrap().1, wanted);

        let at = UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        let body = (content_type, &b"Param1=value1"[..]);
        let sent = signer.headers_of_post("service", &url, body, at);
        headers.insert(2, (PAYLOAD_HASH, payload));
        let request = Signed { method: "POST", url: &url, headers: &headers };
        let authorization = signer.authorization(&request, time, "service");
        assert_eq!(sent[..2], headers[2..]);
        assert_eq!(sent[2], ("authorization", authorization));
    }

    #[test]
    fn all_headers_of_a_request_except_host_are_returned() {
        let signer = Signer { token: Some("t".to_owned()), ..signer("k", "s") };
        let url = "http://h:9000/b/o?partNumber=1&uploadId=a%2Fb".parse().unwrap();
        let at = UNIX_EPOCH + Duration::from_secs(1_369_353_661);
        let headers = signer.headers(Method::Put, &url, at);
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let wanted =
            ["x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "authorization"];
        assert_eq!(names, wanted);
        assert_eq!(headers[1].1, "20130524T000101Z");
        let scope = "AWS4-HMAC-SHA256 Credential=k/20130524/us-east-1/s3/aws4_request, \
                     SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, ";
        assert!(headers[3].1.starts_with(scope), "{}", headers[3].1);
    }
}
