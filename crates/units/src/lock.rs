//! Locking what threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex, also after a thread has panicked while it held it: for values that are whole
/// between any two of their changes.
#[inline]
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
