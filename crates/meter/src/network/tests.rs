//! The parsers of the tools' output, and the conclusions from given counters. The study itself
//! needs namespaces and is run by hand.

use super::counters::dropped;
use super::*;

fn measured(rate: u64, counters: TcpCounters) -> Limit {
    let condition = conditions(BitRate(100_000_000)).remove(0);
    let (bytes, took) = (ByteCount(rate / 8), Duration::from_secs(1));
    ConditionResult { condition, bytes, took, response: Times::default(), counters }.limit()
}

#[test]
fn the_output_of_the_tools_is_parsed() {
    let text = "ESTAB 0 560376 10.9.9.1:8000 10.9.9.2:52542\n\t bbr wscale:7,10 rto:208 \
        bytes_retrans:46336 busy:796ms rwnd_limited:740ms(93.0%) unacked:2 retrans:0/32 \
        minrtt:0.019\nESTAB 0 0 10.9.9.1:8000 10.9.9.2:52544\n\t cubic busy:4ms";
    let counters = TcpCounters::of_sockets(text);
    assert_eq!((counters.busy_ms, counters.window_ms, counters.sent_again), (800, 740, 32));
    let text = "qdisc tbf 8001: root refcnt 3 rate 10Mbit\n Sent 1000 bytes 10 pkt \
        (dropped 31, overlimits 5 requeues 0)";
    assert_eq!(dropped(text), Some(31));
    assert_eq!(dropped("nothing"), None);
}

#[test]
fn the_limit_follows_from_the_counters() {
    let none = TcpCounters { busy_ms: 1000, ..TcpCounters::default() };
    assert_eq!(measured(94_000_000, none), Limit::Link);
    assert_eq!(measured(40_000_000, none), Limit::Machine);
    assert_eq!(measured(40_000_000, TcpCounters { window_ms: 900, ..none }), Limit::Window);
    let lost = TcpCounters { dropped: 9, sent_again: 8, ..none };
    assert_eq!(measured(40_000_000, lost), Limit::Losses);
    let unseen = TcpCounters { dropped: 99, ..none };
    assert_eq!(measured(40_000_000, unseen).word(), "dropped packets");
}

#[test]
fn every_queue_has_room_for_two_packets_and_the_slow_link_is_a_tenth() {
    for condition in conditions(BitRate(10_000_000)) {
        assert!(condition.queue.0 > u64::from(condition.mtu), "{condition:?}");
        assert!([1_000_000, 10_000_000].contains(&condition.link.0), "{condition:?}");
    }
}
