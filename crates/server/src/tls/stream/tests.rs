//! A client of rustls against a stream, in memory.

use super::*;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

fn configs(version: &'static SupportedProtocolVersion) -> (Arc<TlsConfig>, Arc<ClientConfig>) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["films.example".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(ring::default_provider());
    let server = TlsConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

/// A stream, a client, and the way between them, which carries a limited number of bytes at once.
struct Pair {
    config: Arc<TlsConfig>,
    stream: TlsStream,
    client: ClientConnection,
    buffers: SealedBuffers,
    // Records that the stream has given to its socket loop, oldest first.
    on_the_way: VecDeque<Vec<u8>>,
    step: usize,
    /// Plain bytes that have arrived on either side.
    at_server: Vec<u8>,
    at_client: Vec<u8>,
    sent: Vec<u64>,
    most_sealed: usize,
}

impl Pair {
    fn new(version: &'static SupportedProtocolVersion, step: usize) -> Self {
        let (config, client) = configs(version);
        let name = ServerName::try_from("films.example").unwrap();
        Self {
            config,
            stream: TlsStream::new("192.0.2.1:1000".parse().unwrap()),
            client: ClientConnection::new(client, name).unwrap(),
            buffers: SealedBuffers::default(),
            on_the_way: VecDeque::new(),
            step,
            at_server: Vec::new(),
            at_client: Vec::new(),
            sent: Vec::new(),
            most_sealed: 0,
        }
    }

    /// Carries bytes until neither side has any.
    fn run(&mut self) {
        loop {
            let mut to_server = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut to_server).unwrap();
            }
            for part in to_server.chunks(self.step) {
                self.stream.take_in(&self.config, part);
            }
            self.stream.wanted.get_or_insert_default();
            if let Some((bytes, count)) = self.stream.delivery() {
                assert_eq!(bytes.len(), count);
                self.at_server.extend(bytes);
            }
            while let Some(slices) = self.stream.seal(&mut self.buffers) {
                self.on_the_way.push_back(slices.iter().flat_map(|slice| slice.to_vec()).collect());
            }
            self.most_sealed =
                self.most_sealed.max(self.on_the_way.iter().map(Vec::len).sum::<usize>());
            let Some(records) = self.on_the_way.pop_front() else {
                if to_server.is_empty() {
                    return;
                }
                continue;
            };
            self.sent.extend(self.stream.sent(&mut self.buffers));
            for mut part in records.chunks(self.step) {
                while !part.is_empty() {
                    self.client.read_tls(&mut part).unwrap();
                    let state = self.client.process_new_packets().unwrap();
                    let from = self.at_client.len();
                    self.at_client.resize(from + state.plaintext_bytes_to_read(), 0);
                    self.client.reader().read_exact(&mut self.at_client[from..]).unwrap();
                }
            }
        }
    }
}

/// A response of several sends, of slices of every size.
fn sends() -> Vec<Vec<SendSlice>> {
    let sizes: [&[usize]; 6] = [
        &[300, 0, 70_000],
        &[1, 0],
        &[PLAIN_BYTES],
        &[500_000, 7, 16_384, 16_385],
        &[0, 3],
        &[200_000, 65_535],
    ];
    let bytes = |size: usize| (0..=250).cycle().take(size).collect::<Vec<u8>>();
    sizes.iter().map(|send| send.iter().map(|size| bytes(*size).into()).collect()).collect()
}

#[test]
fn every_byte_arrives_once_and_sends_are_reported_in_order_with_bounded_memory() {
    for (version, step) in [(&TLS12, 1000), (&TLS13, 1000), (&TLS13, 17), (&TLS12, 100_000)] {
        let mut pair = Pair::new(version, step);
        pair.client.writer().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut wanted = Vec::new();
        // Queued before the handshake: nothing may go before it.
        for (slices, tag) in sends().into_iter().zip(1..) {
            wanted.extend(slices.iter().flat_map(|slice| slice.to_vec()));
            pair.stream.push(slices, tag);
        }
        pair.run();
        assert!(pair.stream.just_opened().is_some() && pair.stream.just_opened().is_none());
        assert_eq!(pair.at_server, b"GET / HTTP/1.1\r\n\r\n");
        assert!(pair.at_client == wanted, "{version:?}, {step}");
        assert_eq!(pair.sent, [1, 2, 3, 4, 5, 6]);
        assert!(pair.most_sealed <= 2 * (PLAIN_BYTES + 1024), "{}", pair.most_sealed);
        // The end is told to the peer, after everything else.
        pair.stream.finish();
        assert!(!pair.stream.is_finished());
        pair.run();
        assert!(pair.stream.is_finished() && !pair.stream.is_finished());
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
    }
}

#[test]
fn a_peer_that_ends_its_direction_still_gets_its_answer() {
    let mut pair = Pair::new(&TLS13, 1000);
    pair.client.writer().write_all(b"a request").unwrap();
    pair.run();
    pair.client.send_close_notify();
    pair.run();
    assert!(matches!(pair.stream.reportable_end(), Some(StreamEnd::Closed)));
    pair.stream.push(vec![b"an answer".to_vec().into()], 1);
    pair.run();
    assert_eq!((&*pair.at_client, &*pair.sent), (&b"an answer"[..], &[1][..]));
}

#[test]
fn a_failure_is_reported_after_its_alert_and_what_follows_is_not_sent() {
    let mut pair = Pair::new(&TLS12, 1000);
    let (of_another_version, _) = configs(&TLS13);
    pair.stream.push(vec![b"an answer".to_vec().into()], 1);
    let mut hello = Vec::new();
    pair.client.write_tls(&mut hello).unwrap();
    pair.stream.take_in(&of_another_version, &hello);
    assert!(pair.stream.failed_handshake().is_some());
    let alert = pair.stream.seal(&mut pair.buffers).expect("an alert");
    assert_eq!(alert[0][0], 21, "the type of an alert");
    assert!(pair.stream.reportable_end().is_none());
    assert!(pair.stream.sent(&mut pair.buffers).is_empty());
    assert!(matches!(pair.stream.reportable_end(), Some(StreamEnd::Failed(_))));
    assert!(pair.stream.seal(&mut pair.buffers).is_none() && !pair.stream.needs_bytes());
}

#[test]
fn a_request_in_the_clear_is_answered_in_the_clear() {
    let mut pair = Pair::new(&TLS13, 1000);
    pair.stream.wanted = Some(Vec::new());
    pair.stream.take_in(&pair.config, b"GET / HTTP/1.1\r\n\r\n");
    assert!(matches!(pair.stream.reportable_end(), Some(StreamEnd::Clear)));
    pair.stream.push(vec![b"HTTP/1.1 400".to_vec().into(), b" ...".to_vec().into()], 7);
    pair.stream.finish();
    assert!(!pair.stream.is_finished());
    let sent = pair.stream.seal(&mut pair.buffers).unwrap();
    assert_eq!(
        sent.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>(),
        b"HTTP/1.1 400 ..."
    );
    assert_eq!(pair.stream.sent(&mut pair.buffers), [7]);
    assert!(pair.stream.is_finished());
}

#[test]
fn the_plain_bytes_that_the_kernel_has_taken_only_grow() {
    let mut pair = Pair::new(&TLS13, 1000);
    pair.run();
    let before = pair.stream.sealed_taken;
    pair.stream.push(vec![vec![7; 200_000].into()], 1);
    let (mut of_kernel, mut last) = (before, 0);
    let mut ends = VecDeque::new();
    while let Some(slices) = pair.stream.seal(&mut pair.buffers) {
        ends.push_back(ends.back().unwrap_or(&before) + slices[0].len() as u64);
    }
    while let Some(end) = ends.front().copied() {
        of_kernel = end.min(of_kernel + 1000);
        let taken = pair.stream.taken(of_kernel);
        assert!((last..=200_000).contains(&taken) && taken <= of_kernel - before);
        last = taken;
        if of_kernel == end {
            // The loop reports the end of a send later than the kernel takes it.
            pair.stream.sent(&mut pair.buffers);
            assert_eq!(pair.stream.taken(of_kernel), taken);
            let newest = ends.back().copied().unwrap_or(end);
            ends.pop_front();
            if let Some(slices) = pair.stream.seal(&mut pair.buffers) {
                ends.push_back(newest + slices[0].len() as u64);
            }
        }
    }
    assert_eq!(last, 200_000);
}
