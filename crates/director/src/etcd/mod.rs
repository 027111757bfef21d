//! etcd over its JSON gateway: keys, leases and watches as HTTP requests.

mod address;

pub use address::{EtcdAddress, EtcdConfig};
