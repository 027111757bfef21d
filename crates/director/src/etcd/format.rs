//! The record that says of which form the other records of a cluster are.

use super::client::{EtcdClient, EtcdError};
use super::wire::{Condition, RecordWrite};
use cluster::ClusterName;
use serde::{Deserialize, Serialize};

/// The key of the record, below the prefix of the cluster.
pub(crate) const FORMAT_KEY: &str = "format";

#[derive(Serialize, Deserialize)]
struct FormatRecord {
    format: u32,
    /// Guards against records that were copied from another cluster.
    cluster: String,
}

/// The record's value for a new cluster.
fn format_value(cluster: &ClusterName) -> String {
    let record = FormatRecord { format: FORMAT, cluster: cluster.to_string() };
    serde_json::to_string(&record).expect("the record has text keys only")
}

/// Whether the records are of the form that is known here, and of this cluster; the reason if not.
pub(crate) fn check_format(value: &[u8], cluster: &ClusterName) -> Result<(), String> {
    let record: FormatRecord = serde_json::from_slice(value)
        .map_err(|error| format!("the record '{FORMAT_KEY}' cannot be read: {error}"))?;
    if record.format != FORMAT {
        return Err(format!(
            "the records have format {}, and this version of Tenuto uses format {FORMAT}",
            record.format
        ));
    }
    if record.cluster != cluster.as_str() {
        let other: String = record.cluster.chars().take(64).collect();
        return Err(format!("the records are those of the cluster '{other}', not of '{cluster}'"));
    }
    Ok(())
}

/// Why the records of a cluster cannot be written.
pub(crate) enum FormatFailure {
    Etcd(EtcdError),
    /// The records are of another form or another cluster.
    Unusable(String),
}

impl From<EtcdError> for FormatFailure {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(error)
    }
}

/// Checks the form of the cluster's records before any is written, and says it in a new cluster;
/// whether it was written.
pub(crate) fn hold_format(
    client: &mut EtcdClient,
    cluster: &ClusterName,
) -> Result<bool, FormatFailure> {
    let key = format!("{}{FORMAT_KEY}", client.prefix());
    let mut found = client.get(&key)?.0;
    let mut is_new = false;
    if found.is_none() {
        let value = format_value(cluster);
        let put = RecordWrite::Put { key: key.clone(), value, lease: None };
        is_new = client.transact(&[Condition::Absent(&key)], &[put])?;
        found = client.get(&key)?.0;
    }
    let value = found.unwrap_or_default();
    check_format(&value, cluster).map_err(FormatFailure::Unusable)?;
    Ok(is_new)
}

/// The form of the records, written as one number into each cluster.
const FORMAT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_formats_and_clusters_are_told() {
        let (name, other) = (ClusterName::new("a").unwrap(), ClusterName::new("b").unwrap());
        let check = |value: &str| check_format(value.as_bytes(), &name);
        assert_eq!(check(&format_value(&name)), Ok(()));
        let newer = format!(r#"{{"format":{},"cluster":"a","more":1}}"#, FORMAT + 1);
        for (value, why) in [
            (&*format_value(&other), "those of the cluster 'b', not of 'a'"),
            (&newer, "the records have format 4"),
            ("{", "cannot be read"),
        ] {
            let error = check(value).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
