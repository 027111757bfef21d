//! The statistics of an emulated disk and of the emulation's own lateness, and their text in the
//! control file: one `name value` per line, sizes in bytes, times in nanoseconds.

use super::command_queue::DiskRequest;
use crate::Access;
use disk::Service;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;
use units::{ByteCount, Moment, Times, add_fields};

/// The statistics of an emulated disk since its start or the last reset. Requests in fast mode are
/// only counted.
///
/// On a disk with an arm `overhead` + `seek` + `rotation` + `transfer` + `flush` = `busy`, to the
/// nanosecond: it serves one request at a time. On a disk without one services overlap, and their
/// sum is larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: ByteCount,
    /// Bytes written.
    pub written_bytes: ByteCount,
    /// Requests that needed a seek or a rotation.
    pub positioned: u64,
    /// Time before the arm starts; on a disk without an arm, before the first byte.
    pub overhead: Duration,
    /// Time of arm movements.
    pub seek: Duration,
    /// Time of waiting for the platter.
    pub rotation: Duration,
    /// Time from first byte to last.
    pub transfer: Duration,
    /// Time of emptying the write cache for flushes; zero on a disk without one.
    pub flush: Duration,
    /// Time with at least one request in service.
    pub busy: Duration,
    /// Time since the statistics were reset, idle time included.
    pub elapsed: Duration,
    /// Time subtracted for the emulation's own lateness: the time by which services began before
    /// their requests arrived, because these would have arrived earlier on a real disk.
    pub compensated: Duration,
    /// Requests that passed in fast mode.
    pub fast_requests: u64,
    /// Requests that the backing file failed.
    pub failed: u64,
    /// Median lateness of answers after the model's time.
    pub late_p50: Duration,
    /// 90th percentile of that lateness.
    pub late_p90: Duration,
    /// 99th percentile of that lateness.
    pub late_p99: Duration,
    /// Longest lateness of an answer.
    pub late_max: Duration,
}

/// The counters behind the statistics.
#[derive(Debug)]
pub(super) struct Counters {
    so_far: DiskStatistics,
    lateness: Times,
    since: Moment,
    busy_until: Moment,
}

impl Counters {
    pub(super) fn new(now: Moment) -> Self {
        let so_far = DiskStatistics::default();
        Self { so_far, lateness: Times::default(), since: now, busy_until: Moment::ZERO }
    }

    /// Counts a request that arrived at `came`, was served, and was answered at `answered`.
    /// Requests are counted in the order of their ends.
    pub(super) fn served(
        &mut self,
        request: &DiskRequest,
        service: &Service,
        came: Moment,
        answered: Moment,
    ) {
        let s = &mut self.so_far;
        match request.what {
            Access::Read => {
                s.reads += 1;
                s.read_bytes.0 += request.len;
            }
            Access::Write => {
                s.writes += 1;
                s.written_bytes.0 += request.len;
            }
            Access::Flush => s.flush += service.finish.since(service.start),
        }
        s.positioned += u64::from(service.seek + service.rotation > Duration::ZERO);
        add_fields!(s, service; overhead, seek, rotation, transfer);
        // Services overlap on a disk without an arm; each moment counts once.
        s.busy += service.finish.since(service.start.max(self.busy_until));
        self.busy_until = self.busy_until.max(service.finish);
        s.compensated += came.since(service.start);
        self.lateness.record(answered.since(service.finish));
    }

    pub(super) fn passed_fast(&mut self) {
        self.so_far.fast_requests += 1;
    }

    pub(super) fn failed(&mut self) {
        self.so_far.failed += 1;
    }

    pub(super) fn statistics(&self, now: Moment) -> DiskStatistics {
        DiskStatistics {
            elapsed: now.since(self.since),
            late_p50: self.lateness.quantile(0.5),
            late_p90: self.lateness.quantile(0.9),
            late_p99: self.lateness.quantile(0.99),
            late_max: self.lateness.max(),
            ..self.so_far
        }
    }
}

impl DiskStatistics {
    /// All fields by name, in the order in which they are shown.
    fn fields(&mut self) -> [(&'static str, Field<'_>); 19] {
        use Field::{Count, Time};
        [
            ("reads", Count(&mut self.reads)),
            ("writes", Count(&mut self.writes)),
            ("read_bytes", Count(&mut self.read_bytes.0)),
            ("written_bytes", Count(&mut self.written_bytes.0)),
            ("positioned", Count(&mut self.positioned)),
            ("overhead", Time(&mut self.overhead)),
            ("seek", Time(&mut self.seek)),
            ("rotation", Time(&mut self.rotation)),
            ("transfer", Time(&mut self.transfer)),
            ("flush", Time(&mut self.flush)),
            ("busy", Time(&mut self.busy)),
            ("elapsed", Time(&mut self.elapsed)),
            ("compensated", Time(&mut self.compensated)),
            ("fast_requests", Count(&mut self.fast_requests)),
            ("failed", Count(&mut self.failed)),
            ("late_p50", Time(&mut self.late_p50)),
            ("late_p90", Time(&mut self.late_p90)),
            ("late_p99", Time(&mut self.late_p99)),
            ("late_max", Time(&mut self.late_max)),
        ]
    }
}

enum Field<'a> {
    Count(&'a mut u64),
    Time(&'a mut Duration),
}

impl Display for DiskStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, field) in self.clone().fields() {
            match field {
                Field::Count(number) => writeln!(f, "{name} {number}")?,
                Field::Time(time) => writeln!(f, "{name} {}", time.as_nanos())?,
            }
        }
        Ok(())
    }
}

/// Parses the fields in the text and ignores other lines.
impl FromStr for DiskStatistics {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut statistics = Self::default();
        for (name, field) in statistics.fields() {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let number = value.and_then(|value| value.parse().ok());
            let number = number.ok_or_else(|| format!("it says nothing of '{name}'"))?;
            match field {
                Field::Count(count) => *count = number,
                Field::Time(time) => *time = Duration::from_nanos(number),
            }
        }
        Ok(statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::DiskModel;

    #[test]
    fn the_parts_of_an_arms_time_add_up() {
        let model = DiskModel::preset("st39183w").unwrap();
        let (mut head, mut counters) = (model.head(), Counters::new(Moment::ZERO));
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut now, mut owed) = (Moment::ZERO, Duration::ZERO);
        for i in 0..1000 {
            let offset = rng.u64(0..model.capacity().0 / 4096 - 1) * 4096;
            let idle = Duration::from_millis(rng.u64(0..3) * 10);
            let service = head.serve(now + idle, offset, 4096, i % 3 == 0);
            now = service.finish;
            let what = if i % 3 == 0 { Access::Write } else { Access::Read };
            let request = DiskRequest { arrival: service.start, offset, len: 4096, what };
            let (came, answered) = (service.start + idle, now + Duration::from_micros(i));
            counters.served(&request, &service, came, answered);
            owed += idle;
        }
        let s = counters.statistics(now);
        assert_eq!((s.reads, s.writes), (666, 334));
        assert_eq!(s.read_bytes.0 + s.written_bytes.0, 4_096_000);
        assert_eq!(s.overhead + s.seek + s.rotation + s.transfer, s.busy);
        assert!(s.busy < s.elapsed);
        assert_eq!(s.compensated, owed);
        assert_eq!(s.late_max, Duration::from_micros(999));
    }

    #[test]
    fn overlapping_services_are_busy_once() {
        let model = DiskModel::preset("ssd-sata").unwrap();
        let (mut head, mut counters) = (model.head(), Counters::new(Moment::ZERO));
        let mut last = Moment::ZERO;
        for i in 0..32 {
            let service = head.serve(Moment::ZERO, i << 20, 1 << 20, false);
            let (arrival, offset) = (Moment::ZERO, i << 20);
            let request = DiskRequest { arrival, offset, len: 1 << 20, what: Access::Read };
            counters.served(&request, &service, arrival, service.finish);
            last = service.finish;
        }
        let s = counters.statistics(last);
        assert_eq!(s.busy, last.since(Moment::ZERO));
        assert!(s.overhead + s.transfer > s.busy);
    }

    #[test]
    fn the_text_contains_all_fields() {
        let mut statistics = DiskStatistics::default();
        for (i, (_, field)) in statistics.fields().into_iter().enumerate() {
            match field {
                Field::Count(count) => *count = i as u64 + 1,
                Field::Time(time) => *time = Duration::from_nanos(i as u64 + 1),
            }
        }
        let text = format!("model hdd-20tb\n{statistics}");
        assert_eq!(text.parse(), Ok(statistics));
        let short = text.replace("late_max", "later");
        assert_eq!(
            short.parse::<DiskStatistics>(),
            Err("it says nothing of 'late_max'".to_owned())
        );
    }
}
