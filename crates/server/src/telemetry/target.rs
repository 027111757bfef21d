//! Where spans and log records go, by options and by the standard variables of OpenTelemetry.

use super::context::TracedPart;
use percent_encoding::percent_decode_str;
use std::fmt;
use units::Reason;

/// A collector that speaks OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct OtlpTarget {
    /// The beginning of its addresses, such as `http://127.0.0.1:4318`.
    pub url: String,
    /// The part of the sessions that is traced, where no player or proxy has decided that.
    pub traced: TracedPart,
    /// Fields of each request: `OTEL_EXPORTER_OTLP_HEADERS`.
    pub headers: OtlpHeaders,
    /// The name of the service: `OTEL_SERVICE_NAME`.
    pub service: Option<String>,
    /// Further attributes of all spans and records: `OTEL_RESOURCE_ATTRIBUTES`.
    pub attributes: Option<String>,
}

/// The text of `OTEL_EXPORTER_OTLP_HEADERS`, which is secret: `name=value,name=value`.
#[derive(Clone, Default)]
pub struct OtlpHeaders(Option<String>);

impl OtlpTarget {
    /// The collector at `url`, or that of the variables; `None` where there is none.
    pub fn new(
        url: Option<String>,
        traced: TracedPart,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        Some(Self {
            url: url.or_else(|| variable(ENDPOINT))?,
            traced,
            headers: OtlpHeaders(variable(HEADERS)),
            service: variable("OTEL_SERVICE_NAME"),
            attributes: variable(ATTRIBUTES),
        })
    }

    /// The fields of each request.
    pub(crate) fn fields(&self) -> Result<Vec<(String, String)>, Reason> {
        pairs(HEADERS, self.headers.0.as_deref())
    }

    /// The attributes of all spans and records. `instance`: what tells the server from others.
    pub(crate) fn resource(&self, instance: &str) -> Result<Vec<(String, String)>, Reason> {
        let mut all = pairs(ATTRIBUTES, self.attributes.as_deref())?;
        let mut add = |key: &str, value: &str| {
            if all.iter().all(|(known, _)| known != key) {
                all.push((key.to_owned(), value.to_owned()));
            }
        };
        add("service.name", self.service.as_deref().unwrap_or("tenuto"));
        add("service.version", env!("CARGO_PKG_VERSION"));
        add("service.instance.id", instance);
        if let Some(service) = &self.service {
            // This variable goes before the other one.
            let named = all.iter_mut().filter(|(key, _)| key == "service.name");
            named.for_each(|(_, value)| value.clone_from(service));
        }
        Ok(all)
    }
}

impl fmt::Debug for OtlpHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtlpHeaders")
    }
}

/// The pairs of a variable, whose values are percent-encoded (W3C Baggage).
fn pairs(variable: &str, text: Option<&str>) -> Result<Vec<(String, String)>, Reason> {
    let parts = text.unwrap_or_default().split(',').filter(|part| !part.trim().is_empty());
    let decoded = parts.map(|part| {
        let (name, value) = part.split_once('=').filter(|(name, _)| !name.trim().is_empty())?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().to_owned(), value.into_owned()))
    });
    // What is wrong with it is not shown: it may be secret.
    decoded.collect::<Option<_>>().ok_or_else(|| {
        let hint = "pairs such as name=value, with commas between them and %2C for one in a value";
        Reason::new(format!("{variable} is no list of pairs"), hint)
    })
}

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

#[cfg(test)]
mod tests {
    use super::*;
    use units::Hinted;

    fn target(url: Option<&str>, variables: &[(&str, &str)]) -> Option<OtlpTarget> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, it)| (*it).to_owned())
        };
        OtlpTarget::new(url.map(str::to_owned), TracedPart::ALL, variable)
    }

    #[test]
    fn the_option_goes_before_the_variable_and_without_both_there_is_no_target() {
        let (a, b) = ("http://a:4318", "http://b:4318");
        let url = |url, set| target(url, &[(ENDPOINT, set)]).map(|it| it.url);
        assert_eq!(url(Some(a), b).as_deref(), Some(a));
        assert_eq!(url(None, b).as_deref(), Some(b));
        assert_eq!(url(None, " "), None);
        assert!(target(None, &[(HEADERS, "a=b")]).is_none());
    }

    #[test]
    fn pairs_are_decoded_and_secrets_are_not_shown() {
        let set = [(HEADERS, "Authorization=Basic%20abc=, x-scope = a%2Cb,")];
        let with = target(Some("http://a"), &set).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("Authorization", "Basic abc="), pair("x-scope", "a,b")];
        assert_eq!(with.fields().unwrap(), expected);
        assert!(!format!("{with:?}").contains("abc"));
        for wrong in ["secret", "=secret", "a=%ff"] {
            let error = target(Some("http://a"), &[(HEADERS, wrong)]).unwrap().fields();
            assert!(!error.unwrap_err().one_line().contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn a_service_is_named_by_its_variable_then_by_the_attributes_then_by_default() {
        let names = |variables: &[(&str, &str)]| {
            let all = target(Some("http://a"), variables).unwrap().resource("n1").unwrap();
            let of = |key: &str| {
                let mut values = all.iter().filter(|(known, _)| known == key);
                let value = values.next().map(|(_, value)| value.clone());
                assert!(values.next().is_none(), "{key} twice");
                value.unwrap()
            };
            [of("service.name"), of("service.instance.id")]
        };
        let (attributes, service) =
            ((ATTRIBUTES, "service.name=a,rack=r1"), ("OTEL_SERVICE_NAME", "b"));
        assert_eq!(names(&[]), ["tenuto", "n1"]);
        assert_eq!(names(&[attributes]), ["a", "n1"]);
        assert_eq!(names(&[attributes, service]), ["b", "n1"]);
        assert_eq!(names(&[(ATTRIBUTES, "service.instance.id=x")]), ["tenuto", "x"]);
    }
}
