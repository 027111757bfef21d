//! Conditional requests (RFC 9110, section 13): whether a response is sent, and whether as the
//! requested range, by what the client has of the resource already.
//!
//! ```text
//!   If-Match             ── does not hold ─▶ 412
//!   else If-Unmodified-Since ── neither ───▶ 412
//!   If-None-Match        ── does not hold ─▶ 304
//!   else If-Modified-Since ── neither ─────▶ 304
//!   Range with If-Range  ── does not hold ─▶ 200, the whole body      holds ─▶ 206
//! ```

use std::time::{Duration, SystemTime};

/// The conditions of a request. Most requests have none, and then it takes no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conditions(Option<Box<ConditionFields>>);

/// The conditions as the fields of a request state them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ConditionFields {
    if_match: Option<String>,
    if_none_match: Option<String>,
    // A date that is not valid makes no condition (13.1.3 and 13.1.4).
    if_modified_since: Option<SystemTime>,
    if_unmodified_since: Option<SystemTime>,
    if_range: Option<String>,
}

/// What tells the present bytes of a resource from those that it had before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    /// A strong entity tag.
    pub(crate) etag: &'a str,
    /// When the bytes came to be, in whole seconds; `None` if that is not known.
    pub(crate) modified: Option<SystemTime>,
}

/// The result of a request's conditions other than `If-Range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionResult {
    /// The request is answered as if it had no conditions.
    Proceed,
    /// The client has these bytes: 304.
    NotModified,
    /// The client wants other bytes than these: 412.
    Failed,
}

impl Conditions {
    /// Takes a field of a request; false if it is none of these.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> bool {
        let condition = FIELDS.iter().find(|field| name.eq_ignore_ascii_case(field));
        let Some(condition) = condition else { return false };
        let fields = self.0.get_or_insert_default();
        match *condition {
            "if-match" => append(&mut fields.if_match, value),
            "if-none-match" => append(&mut fields.if_none_match, value),
            "if-range" => fields.if_range = Some(value.to_owned()),
            "if-modified-since" => {
                fields.if_modified_since = httpdate::parse_http_date(value).ok();
            }
            _ => fields.if_unmodified_since = httpdate::parse_http_date(value).ok(),
        }
        true
    }

    /// Evaluates the conditions of a GET or HEAD request in the order of RFC 9110, 13.2.2.
    pub(crate) fn evaluate(&self, present: Validators<'_>) -> ConditionResult {
        let Some(fields) = &self.0 else { return ConditionResult::Proceed };
        let newer_than = |date: SystemTime| present.modified.is_some_and(|at| at > date);
        let wanted = match (&fields.if_match, fields.if_unmodified_since) {
            (Some(tags), _) => has_tag(tags, present.etag, Comparison::Strong),
            (None, Some(date)) => !newer_than(date),
            (None, None) => true,
        };
        if !wanted {
            return ConditionResult::Failed;
        }
        let known = match (&fields.if_none_match, fields.if_modified_since) {
            (Some(tags), _) => has_tag(tags, present.etag, Comparison::Weak),
            // Without a date of its own a resource counts as modified.
            (None, Some(date)) => present.modified.is_some_and(|at| at <= date),
            (None, None) => false,
        };
        if known { ConditionResult::NotModified } else { ConditionResult::Proceed }
    }

    /// Whether a request that changes something is to be done only if the resource has, or has not,
    /// bytes that these name. `is_new`: it makes a resource and replaces none, so that
    /// `If-None-Match: *` says what is so anyway.
    pub(crate) fn bind_change(&self, is_new: bool) -> bool {
        let Some(fields) = &self.0 else { return false };
        let other_than = |tags: &String| !(is_new && tags == "*");
        fields.if_match.is_some()
            || fields.if_unmodified_since.is_some()
            || fields.if_none_match.as_ref().is_some_and(other_than)
    }

    /// Whether a range may be sent (`If-Range`): the parts that the client has are of these bytes.
    pub(crate) fn range_holds(&self, present: Validators<'_>, now: SystemTime) -> bool {
        let condition = self.0.as_ref().and_then(|fields| fields.if_range.as_ref());
        let Some(condition) = condition else { return true };
        if condition.starts_with('"') || condition.starts_with("W/") {
            // Parts must be equal byte by byte, which a weak tag does not say.
            return condition == present.etag;
        }
        let date = httpdate::parse_http_date(condition).ok();
        // A date says so only when its second is over (8.8.2.2).
        let is_over =
            |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= Duration::from_secs(1));
        date.is_some() && date == present.modified.filter(|at| is_over(*at))
    }
}

/// How entity tags are compared (RFC 9110, 8.8.3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Weak tags equal none.
    Strong,
    Weak,
}

/// Whether a list of entity tags has this strong one, or is `*`.
fn has_tag(list: &str, etag: &str, comparison: Comparison) -> bool {
    // A comma within a tag divides it into two that equal none: tags of this server have no comma.
    let mut tags = list.split(',').map(str::trim);
    list == "*"
        || tags.any(|tag| match tag.strip_prefix("W/") {
            Some(weak) => comparison == Comparison::Weak && weak == etag,
            None => tag == etag,
        })
}

/// Several fields of one name are one list (RFC 9110, 5.3).
fn append(list: &mut Option<String>, value: &str) {
    match list {
        Some(list) => {
            list.push(',');
            list.push_str(value);
        }
        None => *list = Some(value.to_owned()),
    }
}

/// The fields that make conditions, in lower case.
const FIELDS: [&str; 5] =
    ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &str = "\"now\"";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn conditions(fields: &[(&str, &str)]) -> Conditions {
        let mut conditions = Conditions::default();
        for (name, value) in fields {
            assert!(conditions.take(name, value), "{name}");
        }
        conditions
    }

    fn present() -> Validators<'static> {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        Validators { etag: ETAG, modified: Some(modified) }
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_the_rfc() {
        use ConditionResult::{Failed, NotModified, Proceed};
        let table: &[(&[(&str, &str)], ConditionResult)] = &[
            (&[], Proceed),
            (&[("If-Match", ETAG)], Proceed),
            (&[("IF-MATCH", "*")], Proceed),
            (&[("If-Match", "\"old\", \"now\"")], Proceed),
            (&[("If-Match", "\"old\""), ("If-Match", "\"now\"")], Proceed),
            (&[("If-Match", "\"old\"")], Failed),
            (&[("If-Match", "W/\"now\"")], Failed),
            (&[("If-Match", "now")], Failed),
            (&[("If-Match", "")], Failed),
            (&[("If-Unmodified-Since", BEFORE)], Failed),
            (&[("If-Unmodified-Since", MODIFIED)], Proceed),
            (&[("If-Unmodified-Since", AFTER)], Proceed),
            (&[("If-Unmodified-Since", "yesterday")], Proceed),
            (&[("If-None-Match", ETAG)], NotModified),
            (&[("If-None-Match", "W/\"now\"")], NotModified),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"a\",\"now\" ,\"b\"")], NotModified),
            (&[("If-None-Match", "\"a\""), ("If-None-Match", ETAG)], NotModified),
            (&[("If-None-Match", "\"old\"")], Proceed),
            (&[("If-None-Match", "\"*\"")], Proceed),
            (&[("If-None-Match", "\"no,now\"")], Proceed),
            (&[("If-Modified-Since", BEFORE)], Proceed),
            (&[("If-Modified-Since", MODIFIED)], NotModified),
            (&[("If-Modified-Since", AFTER)], NotModified),
            (&[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
            (&[("If-Modified-Since", "Sun Nov  6 08:49:37 1994")], NotModified),
            (&[("If-Modified-Since", "784111777")], Proceed),
            (&[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT, x")], Proceed),
            // A tag says more than a date, so the date beside it is ignored.
            (&[("If-None-Match", "\"old\""), ("If-Modified-Since", AFTER)], Proceed),
            (&[("If-None-Match", ETAG), ("If-Modified-Since", BEFORE)], NotModified),
            (&[("If-Match", ETAG), ("If-Unmodified-Since", BEFORE)], Proceed),
            (&[("If-Match", "\"old\""), ("If-Unmodified-Since", AFTER)], Failed),
            // 412 comes before 304.
            (&[("If-Match", "\"old\""), ("If-None-Match", ETAG)], Failed),
            (&[("If-None-Match", ETAG), ("If-Match", ETAG)], NotModified),
            (&[("If-Unmodified-Since", BEFORE), ("If-Modified-Since", AFTER)], Failed),
        ];
        for (fields, expected) in table {
            assert_eq!(conditions(fields).evaluate(present()), *expected, "{fields:?}");
        }
    }

    #[test]
    fn without_a_date_of_the_resource_only_tags_decide() {
        let undated = Validators { modified: None, ..present() };
        for field in ["If-Modified-Since", "If-Unmodified-Since"] {
            for date in [BEFORE, AFTER] {
                let result = conditions(&[(field, date)]).evaluate(undated);
                assert_eq!(result, ConditionResult::Proceed, "{field}: {date}");
            }
        }
        let now = SystemTime::now();
        assert!(!conditions(&[("If-Range", MODIFIED)]).range_holds(undated, now));
    }

    #[test]
    fn a_range_is_sent_only_of_the_same_bytes() {
        let now = SystemTime::now();
        for (condition, holds) in [
            (ETAG, true),
            ("\"old\"", false),
            ("W/\"now\"", false),
            (MODIFIED, true),
            ("Sun Nov  6 08:49:37 1994", true),
            (BEFORE, false),
            (AFTER, false),
            ("now", false),
            ("", false),
        ] {
            let of_request = conditions(&[("If-Range", condition)]);
            assert_eq!(of_request.range_holds(present(), now), holds, "{condition}");
        }
        let (within, modified) = (Duration::from_millis(999), present().modified.unwrap());
        let dated = conditions(&[("If-Range", MODIFIED)]);
        assert!(!dated.range_holds(present(), modified + within), "its second is not over");
        assert!(Conditions::default().range_holds(present(), now));
    }
}
