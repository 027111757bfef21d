//! A bounded pool of aligned buffers for reads and writes, whose ownership the compiler checks.
//!
//! ```text
//!   Pool ──take──▶ Buffer (one owner, writable) ──freeze──▶ SharedBuffer (many owners, read-only)
//!    ▲                 │ drop                                   │ last drop
//!    └─────────────────┴────────────────────────────────────────┘
//! ```
//!
//! All buffers are in one stretch of memory, reserved when the pool is made and touched only when
//! used; in huge pages where the kernel has them, because the block layer splits a read into
//! scattered small pages. Buffers are not cleared between users: a device read overwrites them or
//! fails, and a writer fills them first.
#![expect(unsafe_code, reason = "memory that the kernel writes to is mapped by hand")]

use crate::frames::{FrameSlot, Frames};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use units::{ByteCount, index, locked};

/// A pool of buffers. Clones share the same memory.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<PoolShared>,
}

#[derive(Debug)]
struct PoolShared {
    memory: Memory,
    frame_size: usize,
    /// Number of frames in a region, which is registered with the kernel as a whole.
    region_frames: u32,
    count: u32,
    frames: Mutex<Frames>,
    /// For each region, how often its memory was returned to the kernel.
    returns: Vec<AtomicU32>,
    /// The sum of `returns`.
    all_returns: AtomicU32,
}

impl Pool {
    /// A pool with at most `limit` bytes, for buffers of up to `largest` bytes. Memory is reserved,
    /// not touched.
    ///
    /// # Panics
    /// Panics if the address space is exhausted.
    pub fn new(limit: ByteCount, largest: ByteCount) -> Self {
        let frame_size =
            usize::try_from(units::align_up(largest.0.max(1), PAGE)).unwrap_or(usize::MAX);
        let count = u32::try_from(limit.0 / frame_size as u64).unwrap_or(u32::MAX);
        let region_frames = u32::try_from(HUGE_PAGE.div_ceil(frame_size)).unwrap_or(u32::MAX);
        // A region is at least a huge page, and larger where a pool would have too many regions.
        let region_frames = region_frames.max(count.div_ceil(MOST_REGIONS)).max(1);
        let shared = PoolShared {
            memory: Memory::reserve(index(count) * frame_size),
            frame_size,
            region_frames,
            count,
            frames: Mutex::new(Frames::new(frame_size, count)),
            returns: (0..count.div_ceil(region_frames)).map(|_| AtomicU32::new(0)).collect(),
            all_returns: AtomicU32::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A buffer of exactly `len` bytes (a multiple of 4,096, at most `largest`), aligned to 4,096;
    /// `None` when the pool is empty.
    pub fn take(&self, len: usize) -> Option<Buffer> {
        let shared = &self.shared;
        assert!(
            len > 0 && len.is_multiple_of(4096) && len <= shared.frame_size,
            "a buffer of {len} bytes from a pool of frames of {}",
            shared.frame_size
        );
        let place = locked(&shared.frames).take(len)?;
        let offset = place.offset(shared.frame_size);
        debug_assert!(offset + len <= shared.memory.len);
        // SAFETY: `place` lies within the mapping (asserted above and by `Frames`' tests).
        let start = unsafe { shared.memory.start.add(offset) };
        Some(Buffer { start, len, place, shared: Arc::clone(shared) })
    }

    /// Bytes of memory that are lent: frames in use or cut for small buffers. Never above the
    /// pool's limit.
    pub fn used(&self) -> ByteCount {
        let frames = locked(&self.shared.frames);
        ByteCount(u64::from(frames.lent()) * self.shared.frame_size as u64)
    }

    /// Returns memory of free buffers to the kernel, so that the pool has at most `limit` bytes, as
    /// far as it is free; returns whether there was any. A queue that has registered it with the
    /// kernel keeps it in use until its next transfer or
    /// [`Queue::release_returned`](crate::Queue::release_returned).
    pub fn keep_at_most(&self, limit: ByteCount) -> bool {
        let shared = &self.shared;
        let most = u32::try_from(limit.0 / shared.frame_size as u64).unwrap_or(u32::MAX);
        // Held until the memory is returned, so that no buffer is taken from it before.
        let mut frames = locked(&shared.frames);
        let given_up = frames.give_up(most);
        for frame in given_up.iter().copied() {
            let (offset, len) = (index(frame) * shared.frame_size, shared.frame_size);
            debug_assert!(offset + len <= shared.memory.len);
            // SAFETY: within the mapping, and no buffer is in a frame that is free.
            let start = unsafe { shared.memory.start.add(offset) };
            // SAFETY: as above.
            let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxDontNeed) };
            shared.returns[index(frame / shared.region_frames)].fetch_add(1, Ordering::Release);
            shared.all_returns.fetch_add(1, Ordering::Release);
        }
        !given_up.is_empty()
    }

    /// Bytes of memory that the kernel has given for buffers and not got back.
    pub fn resident(&self) -> ByteCount {
        let frames = locked(&self.shared.frames);
        ByteCount(u64::from(frames.resident()) * self.shared.frame_size as u64)
    }

    /// How often memory of a region was returned to the kernel. What was registered before is no
    /// memory of the region any more.
    pub(crate) fn returns_of(&self, region: u32) -> u32 {
        self.shared.returns[index(region)].load(Ordering::Acquire)
    }

    /// Whether the kernel has none of a region's memory back at present.
    pub(crate) fn region_is_whole(&self, region: u32) -> bool {
        let first = region * self.shared.region_frames;
        let frames = locked(&self.shared.frames);
        frames.none_returned(first..first + self.shared.region_frames)
    }

    /// How often memory of any region was returned to the kernel.
    pub(crate) fn returns(&self) -> u32 {
        self.shared.all_returns.load(Ordering::Acquire)
    }

    /// The size of the memory: the limit, rounded down to whole frames.
    pub fn size(&self) -> ByteCount {
        ByteCount(self.shared.memory.len as u64)
    }

    /// Number of regions of the memory, see [`Pool::region`].
    pub(crate) fn regions(&self) -> u32 {
        self.shared.count.div_ceil(self.shared.region_frames)
    }

    /// A stretch of memory that no buffer crosses, to be registered with the kernel as a whole.
    pub(crate) fn region(&self, number: u32) -> (NonNull<u8>, usize) {
        let shared = &self.shared;
        let size = index(shared.region_frames) * shared.frame_size;
        let offset = index(number) * size;
        assert!(offset < shared.memory.len, "region {number} of {}", self.regions());
        // SAFETY: within the mapping, asserted above.
        let start = unsafe { shared.memory.start.add(offset) };
        (start, size.min(shared.memory.len - offset))
    }

    /// The region of this buffer, if it belongs to this pool.
    pub(crate) fn region_of(&self, buffer: &Buffer) -> Option<u32> {
        Arc::ptr_eq(&self.shared, &buffer.shared)
            .then(|| buffer.place.frame() / self.shared.region_frames)
    }
}

/// A buffer with one owner.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    place: FrameSlot,
    shared: Arc<PoolShared>,
}

// SAFETY: a buffer is the only owner of its bytes, as a `Box<[u8]>` is.
unsafe impl Send for Buffer {}
// SAFETY: shared references only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Makes it read-only and shareable.
    pub fn freeze(self) -> SharedBuffer {
        SharedBuffer { buffer: Arc::new(self) }
    }

    /// The address of its byte `from`, for the kernel to read or write. The caller keeps the buffer
    /// until the kernel has finished.
    pub(crate) fn place(&self, from: usize) -> NonNull<u8> {
        assert!(from <= self.len, "byte {from} of {}", self.len);
        // SAFETY: within the buffer, or just behind it, asserted above.
        unsafe { self.start.add(from) }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped, zeroed by the kernel when first touched, and lent to this buffer alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        locked(&self.shared.frames).give(self.place);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

/// A read-only buffer with several owners.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    buffer: Arc<Buffer>,
}

impl Deref for SharedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

/// A private mapping, aligned to a huge page.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    len: usize,
    mapped: NonNull<u8>,
    mapped_len: usize,
}

// SAFETY: only an address range; who may touch which part of it is up to `Frames`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn reserve(len: usize) -> Self {
        // The last huge page is used if half of it is needed.
        let huge = len.max(len.saturating_add(HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE);
        // One huge page more than needed, because the kernel aligns a mapping to small pages only.
        let mapped_len = huge.saturating_add(HUGE_PAGE);
        // NORESERVE: the limit may exceed what is free now; only buffers in use take memory.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let mapping = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_len, access, flags) };
        let address = mapping.unwrap_or_else(|error| {
            panic!("no address space for {} of buffers: {error}", ByteCount(len as u64))
        });
        let mapped = NonNull::new(address.cast::<u8>()).expect("a mapping is not at zero");
        // SAFETY: at most a huge page further, and the mapping has one to spare.
        let start = unsafe { mapped.add(mapped.as_ptr().align_offset(HUGE_PAGE)) };
        // Without huge pages reads are only split smaller; a child process (FFmpeg) does not need
        // the buffers. A kernel without either advice refuses it, which is no error. Both cover the
        // same stretch, because a huge page does not cross from one advice to another.
        for advice in [Advice::LinuxHugepage, Advice::LinuxDontFork] {
            // SAFETY: within the mapping, and neither advice changes what the memory holds.
            let _ = unsafe { madvise(start.as_ptr().cast(), huge, advice) };
        }
        Self { start, len, mapped, mapped_len }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: every buffer holds the pool's memory alive, so none is left.
        let unmapped = unsafe { munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// The alignment of buffers, in address and length.
const PAGE: u64 = 4096;

/// The huge page of all supported machines (x86-64, and arm64 with 4 KiB pages).
const HUGE_PAGE: usize = 2 << 20;

/// The largest number of regions of a pool: the kernel takes 16,384 registered buffers per ring.
const MOST_REGIONS: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_a_dropped_buffer_can_be_taken_again() {
        let pool = Pool::new(ByteCount::mib(5), ByteCount::mib(2));
        assert_eq!((pool.size(), pool.used()), (ByteCount::mib(4), ByteCount::ZERO));
        let first = pool.take(2 << 20).unwrap();
        let second = pool.take(1 << 20).unwrap().freeze();
        assert!(pool.take(4096).is_none());
        assert_eq!(pool.used(), ByteCount::mib(4));
        let reader = second.clone();
        drop((first, second));
        assert_eq!((reader.len(), pool.used()), (1 << 20, ByteCount::mib(2)));
        drop(reader);
        assert_eq!(pool.used(), ByteCount::ZERO);
        assert!(
            pool.take(2 << 20).is_some()
                && Pool::new(ByteCount(1), ByteCount::MIB).take(4096).is_none()
        );
    }

    #[test]
    fn free_memory_goes_back_to_the_kernel_and_is_lent_again() {
        let pool = Pool::new(ByteCount::mib(16), ByteCount::MIB);
        let mut buffers: Vec<Buffer> = (0..16).map(|_| pool.take(1 << 20).unwrap()).collect();
        buffers.iter_mut().for_each(|buffer| buffer.fill(7));
        buffers.truncate(5);
        assert_eq!((pool.used(), pool.resident()), (ByteCount::mib(5), ByteCount::mib(16)));
        pool.keep_at_most(ByteCount::mib(12));
        assert_eq!(pool.resident(), ByteCount::mib(12));
        pool.keep_at_most(ByteCount::ZERO);
        assert_eq!((pool.used(), pool.resident()), (ByteCount::mib(5), ByteCount::mib(5)));
        assert!(buffers.iter().all(|buffer| buffer.iter().all(|byte| *byte == 7)));
        let again: Vec<Buffer> = (0..11).map(|_| pool.take(1 << 20).unwrap()).collect();
        assert!(again[10].iter().all(|byte| *byte == 0), "new memory");
        assert_eq!(pool.resident(), ByteCount::mib(16));
    }

    #[test]
    fn buffers_are_aligned_and_apart() {
        let pool = Pool::new(ByteCount::mib(8), ByteCount::mib(1));
        let mut buffers: Vec<Buffer> =
            [4096, 1 << 20, 8192, 4096].map(|len| pool.take(len).unwrap()).into();
        for (i, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(buffer.as_ptr().align_offset(4096), 0);
            buffer.fill(u8::try_from(i).unwrap() + 1);
        }
        for (i, buffer) in buffers.iter().enumerate() {
            assert!(buffer.iter().all(|byte| usize::from(*byte) == i + 1), "buffer {i} is torn");
        }
        assert_eq!(pool.region(0).0.as_ptr().align_offset(HUGE_PAGE), 0);
    }

    /// The end of the mapping that contains this address, and its flags, from the kernel.
    fn mapping_of(address: usize) -> (usize, String) {
        let shown = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut end = None;
        for line in shown.lines() {
            let mut ends = line.split([' ', '-']).map(|text| usize::from_str_radix(text, 16));
            if let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) {
                end = (first..last).contains(&address).then_some(last);
            } else if let (Some(end), Some(flags)) = (end, line.strip_prefix("VmFlags:")) {
                return (end, flags.to_owned());
            }
        }
        panic!("nothing is mapped at {address:x}");
    }

    #[test]
    fn the_memory_may_use_huge_pages_also_in_a_small_pool() {
        testkit::needs!(HugePages);
        // Several sizes, because the result depends on the kernel's choice of address.
        let sizes = (0..16).flat_map(|_| [1, 2, 7].map(ByteCount::mib));
        let pools: Vec<Pool> = sizes.map(|size| Pool::new(size, ByteCount::MIB)).collect();
        for pool in pools {
            let (start, size) = (pool.region(0).0.addr().get(), pool.size());
            let (end, flags) = mapping_of(start);
            assert!(flags.contains(" hg "), "{size}:{flags}");
            assert!(end - start >= HUGE_PAGE, "{size}: {} bytes", end - start);
        }
    }

    #[test]
    fn regions_cover_all_buffers() {
        for (limit, largest) in [(64 << 20, 1 << 20), (64 << 20, 16 << 20), (48 << 20, 3 << 19)] {
            let pool = Pool::new(ByteCount(limit), ByteCount(largest));
            let covered: usize = (0..pool.regions()).map(|r| pool.region(r).1).sum();
            assert_eq!(covered as u64, pool.size().0);
            let len = usize::try_from(largest).unwrap();
            while let Some(buffer) = pool.take(len) {
                let (start, size) = pool.region(pool.region_of(&buffer).unwrap());
                let offset = buffer.as_ptr() as usize - start.as_ptr() as usize;
                assert!(offset + len <= size);
                std::mem::forget(buffer);
            }
        }
        let other = Pool::new(ByteCount::MIB, ByteCount::MIB).take(4096).unwrap();
        assert_eq!(Pool::new(ByteCount::MIB, ByteCount::MIB).region_of(&other), None);
    }
}
