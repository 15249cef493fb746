//! The table of functions through which `shim.cc` calls the [`Model`], and the ownership rules between the two.
//!
//! C++ holds one counted reference to the shared model per `Env` and gives it back through `release`; RocksDB's threads
//! call in from outside the simulation, so every call takes the lock. No function here may unwind into C++: an
//! `extern "C"` function that panics ends the process, which is what a broken model should do.
#![expect(unsafe_code, reason = "the boundary to RocksDB's C++; each block says why it holds")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard};

use librocksdb_sys::rocksdb_env_t;

use super::model::{Mode, Model, Refusal};

/// The model behind its lock.
pub(super) struct Shared(Mutex<Model>);

impl Shared {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Model::new())))
    }

    pub(super) fn model(&self) -> MutexGuard<'_, Model> {
        self.0.lock().expect("a panic under the lock ends the process or the test")
    }
}

/// The background jobs of one `Env`. Safe to outlive the `Env`.
pub(super) struct Jobs(*mut c_void);

// SAFETY: the pointer leads to a C++ shared_ptr of an object that does its own locking; it is only read until freed,
// and freed once, by `Drop`.
unsafe impl Send for Jobs {}
// SAFETY: as above; waiting takes `&self` and is safe from any number of threads.
unsafe impl Sync for Jobs {}

impl Jobs {
    /// Runs what is ready, and returns when no job runs. The `Env` must be alive: its threads run them.
    pub(super) fn settle(&self) {
        // SAFETY: the pointer came from `petuum_sim_env_create` and is freed only by `Drop`; the owner of `self` owns the
        // `Env` too.
        unsafe { petuum_sim_jobs_settle(self.0) }
    }

    /// Returns when no job runs.
    pub(super) fn wait_idle(&self) {
        // SAFETY: as above.
        unsafe { petuum_sim_jobs_wait_idle(self.0) }
    }

    /// Jobs that RocksDB schedules from now on wait for a call of [`Jobs::settle`] or for a new log.
    pub(super) fn queue(&self) {
        // SAFETY: as above.
        unsafe { petuum_sim_jobs_queue(self.0) }
    }

    /// Jobs that RocksDB schedules from now on wait until they are released, or for a new log.
    pub(super) fn hold(&self) {
        // SAFETY: as above.
        unsafe { petuum_sim_jobs_hold(self.0) }
    }

    /// Makes the jobs ready that are held back; how many they were.
    pub(super) fn release(&self) -> usize {
        // SAFETY: as above.
        unsafe { petuum_sim_jobs_release(self.0) }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // SAFETY: the only call, with the pointer that `petuum_sim_env_create` gave.
        unsafe { petuum_sim_jobs_free(self.0) }
    }
}

/// An `Env` over `shared`. It may outlive the caller's own reference.
pub(super) fn create_env(shared: &Arc<Shared>) -> (rocksdb::Env, Jobs) {
    let model = Arc::into_raw(Arc::clone(shared)).cast::<c_void>();
    let mut jobs = std::ptr::null_mut();
    // SAFETY: `OPS` lives for ever and matches the C++ declaration field by field; the reference in `model` is given
    // back once, by `release`. The result is a fresh object with the layout of RocksDB's own `rocksdb_env_t`, whose
    // ownership `Env` takes; its destructor calls `rocksdb_env_destroy`, which deletes both it and the C++ Env.
    let env = unsafe { rocksdb::Env::from_raw(petuum_sim_env_create(&OPS, model, &mut jobs)) };
    (env, Jobs(jobs))
}

/// Seeds the generator that RocksDB keeps for the calling thread.
pub(super) fn seed_thread(seed: u32) {
    // SAFETY: touches only storage of the calling thread.
    unsafe { petuum_sim_seed_thread(seed) }
}

unsafe extern "C" {
    fn petuum_sim_seed_thread(seed: u32);
    fn petuum_sim_env_create(ops: *const DiskOps, model: *const c_void, jobs: *mut *mut c_void) -> *mut rocksdb_env_t;
    fn petuum_sim_jobs_settle(jobs: *mut c_void);
    fn petuum_sim_jobs_wait_idle(jobs: *mut c_void);
    fn petuum_sim_jobs_queue(jobs: *mut c_void);
    fn petuum_sim_jobs_hold(jobs: *mut c_void);
    fn petuum_sim_jobs_release(jobs: *mut c_void) -> usize;
    fn petuum_sim_jobs_free(jobs: *mut c_void);
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PathRef {
    data: *const c_char,
    len: usize,
}

type Disk = *const c_void;

/// Must equal `DiskOps` in `shim.cc`, field by field.
#[repr(C)]
struct DiskOps {
    release: unsafe extern "C" fn(Disk),
    open: unsafe extern "C" fn(Disk, PathRef, c_int, *mut u64) -> c_int,
    close: unsafe extern "C" fn(Disk, u64),
    read: unsafe extern "C" fn(Disk, u64, u64, usize, *mut u8, *mut usize) -> c_int,
    append: unsafe extern "C" fn(Disk, u64, *const u8, usize) -> c_int,
    truncate: unsafe extern "C" fn(Disk, u64, u64) -> c_int,
    sync: unsafe extern "C" fn(Disk, u64) -> c_int,
    len: unsafe extern "C" fn(Disk, u64, *mut u64) -> c_int,
    stat: unsafe extern "C" fn(Disk, PathRef, *mut u64, *mut bool) -> c_int,
    list: unsafe extern "C" fn(Disk, PathRef, *mut c_void, unsafe extern "C" fn(*mut c_void, PathRef)) -> c_int,
    rename: unsafe extern "C" fn(Disk, PathRef, PathRef) -> c_int,
    link: unsafe extern "C" fn(Disk, PathRef, PathRef) -> c_int,
    remove: unsafe extern "C" fn(Disk, PathRef) -> c_int,
    make_directory: unsafe extern "C" fn(Disk, PathRef, bool) -> c_int,
    remove_directory: unsafe extern "C" fn(Disk, PathRef) -> c_int,
    sync_directory: unsafe extern "C" fn(Disk, PathRef) -> c_int,
    lock: unsafe extern "C" fn(Disk, PathRef) -> c_int,
    unlock: unsafe extern "C" fn(Disk, PathRef),
}

static OPS: DiskOps = DiskOps {
    release,
    open,
    close,
    read,
    append,
    truncate,
    sync,
    len,
    stat,
    list,
    rename,
    link,
    remove,
    make_directory,
    remove_directory,
    sync_directory,
    lock,
    unlock,
};

/// # Safety
/// `disk` is the reference that [`create_env`] gave to C++, not yet released.
unsafe fn model<'a>(disk: Disk) -> MutexGuard<'a, Model> {
    // SAFETY: the caller's promise: the object is alive until `release`, which C++ calls after all else.
    unsafe { &*disk.cast::<Shared>() }.model()
}

/// # Safety
/// `path` points to its length in bytes, alive for `'a`.
unsafe fn text<'a>(path: PathRef) -> &'a str {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(path.data.cast::<u8>(), path.len) };
    std::str::from_utf8(bytes).expect("paths are given by us, in UTF-8, and by RocksDB, in ASCII")
}

/// 0 and the value stored, or the refusal's number.
///
/// # Safety
/// `out` can be written.
unsafe fn store<T>(result: Result<T, Refusal>, out: *mut T) -> c_int {
    match result {
        Ok(value) => {
            // SAFETY: the caller's promise.
            unsafe { out.write(value) };
            0
        }
        Err(refusal) => refusal as c_int,
    }
}

fn code(result: Result<(), Refusal>) -> c_int {
    result.map_or_else(|refusal| refusal as c_int, |()| 0)
}

// In all functions below: `disk` is alive, see `model`; pointers are those of C++ objects alive during the call.

unsafe extern "C" fn release(disk: Disk) {
    // SAFETY: C++ calls this once, for the reference it was given.
    drop(unsafe { Arc::from_raw(disk.cast::<Shared>()) });
}

unsafe extern "C" fn open(disk: Disk, path: PathRef, mode: c_int, handle: *mut u64) -> c_int {
    let mode = match mode {
        0 => Mode::Read,
        1 => Mode::Create,
        2 => Mode::Reopen,
        other => unreachable!("shim.cc knows three modes, got {other}"),
    };
    // SAFETY: see above.
    unsafe { store(model(disk).open(text(path), mode), handle) }
}

unsafe extern "C" fn close(disk: Disk, handle: u64) {
    // SAFETY: see above.
    unsafe { model(disk) }.close(handle);
}

unsafe extern "C" fn read(disk: Disk, handle: u64, offset: u64, len: usize, into: *mut u8, got: *mut usize) -> c_int {
    if len == 0 {
        // RocksDB may pass a null buffer with it.
        // SAFETY: see above.
        return unsafe { store(Ok(0), got) };
    }
    // SAFETY: see above. RocksDB's scratch may be uninitialised memory, so it is zeroed before a slice is made of it.
    unsafe {
        into.write_bytes(0, len);
        store(model(disk).read(handle, offset, std::slice::from_raw_parts_mut(into, len)), got)
    }
}

unsafe extern "C" fn append(disk: Disk, handle: u64, data: *const u8, len: usize) -> c_int {
    // SAFETY: see above; an empty slice may come with a null pointer.
    let bytes = if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, len) } };
    // SAFETY: see above.
    code(unsafe { model(disk) }.append(handle, bytes))
}

unsafe extern "C" fn truncate(disk: Disk, handle: u64, len: u64) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk) }.truncate(handle, len))
}

unsafe extern "C" fn sync(disk: Disk, handle: u64) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk) }.sync(handle))
}

unsafe extern "C" fn len(disk: Disk, handle: u64, len: *mut u64) -> c_int {
    // SAFETY: see above.
    unsafe { store(model(disk).len(handle), len) }
}

unsafe extern "C" fn stat(disk: Disk, path: PathRef, len: *mut u64, is_directory: *mut bool) -> c_int {
    // SAFETY: see above.
    unsafe {
        let found = model(disk).stat(text(path));
        store(found.map(|(_, directory)| directory), is_directory);
        store(found.map(|(bytes, _)| bytes), len)
    }
}

unsafe extern "C" fn list(
    disk: Disk,
    path: PathRef,
    into: *mut c_void,
    add: unsafe extern "C" fn(*mut c_void, PathRef),
) -> c_int {
    // SAFETY: see above.
    let names = unsafe { model(disk).list(text(path)) };
    match names {
        Ok(names) => {
            for name in names {
                // SAFETY: `add` copies the name into `into`, both from C++, before it returns.
                unsafe { add(into, PathRef { data: name.as_ptr().cast(), len: name.len() }) };
            }
            0
        }
        Err(refusal) => refusal as c_int,
    }
}

unsafe extern "C" fn rename(disk: Disk, from: PathRef, to: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).rename(text(from), text(to)) })
}

unsafe extern "C" fn link(disk: Disk, from: PathRef, to: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).link(text(from), text(to)) })
}

unsafe extern "C" fn remove(disk: Disk, path: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).remove(text(path)) })
}

unsafe extern "C" fn make_directory(disk: Disk, path: PathRef, must_be_new: bool) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).make_directory(text(path), must_be_new) })
}

unsafe extern "C" fn remove_directory(disk: Disk, path: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).remove_directory(text(path)) })
}

unsafe extern "C" fn sync_directory(disk: Disk, path: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).sync_directory(text(path)) })
}

unsafe extern "C" fn lock(disk: Disk, path: PathRef) -> c_int {
    // SAFETY: see above.
    code(unsafe { model(disk).lock(text(path)) })
}

unsafe extern "C" fn unlock(disk: Disk, path: PathRef) {
    // SAFETY: see above.
    unsafe { model(disk).unlock(text(path)) };
}
