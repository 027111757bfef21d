//! The record that says of which form the other records of a cluster are.

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
pub(crate) fn format_value(cluster: &ClusterName) -> String {
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

/// The form of the records, written as one number into each cluster.
const FORMAT: u32 = 1;

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
            (&newer, "the records have format 2"),
            ("{", "cannot be read"),
        ] {
            let error = check(value).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
