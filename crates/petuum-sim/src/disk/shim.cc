// The C++ half of the simulated disk: a rocksdb::Env whose files live in the Rust model.
//
// It holds no state of files of its own: every operation is one call through the table of functions that Rust passes,
// so that what is durable, lost or refused is decided, and tested, in one place. It adds two things that only C++ can
// do: it decides when RocksDB's background jobs run, and it has a logger that writes nothing, because RocksDB's
// information log is full of wall-clock time.

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "env/composite_env_wrapper.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/io_status.h"
#include "rocksdb/system_clock.h"
#include "util/random.h"

using namespace ROCKSDB_NAMESPACE;

extern "C" {

struct PathRef {
  const char* data;
  size_t len;
};

// Must equal `DiskOps` in ffi.rs, field by field.
struct DiskOps {
  void (*release)(const void* disk);
  int (*open)(const void* disk, PathRef path, int mode, uint64_t* handle);
  void (*close)(const void* disk, uint64_t handle);
  int (*read)(const void* disk, uint64_t handle, uint64_t offset, size_t len, char* into, size_t* got);
  int (*append)(const void* disk, uint64_t handle, const char* data, size_t len);
  int (*truncate)(const void* disk, uint64_t handle, uint64_t len);
  int (*sync)(const void* disk, uint64_t handle);
  int (*len)(const void* disk, uint64_t handle, uint64_t* len);
  int (*stat)(const void* disk, PathRef path, uint64_t* len, bool* is_directory);
  int (*list)(const void* disk, PathRef path, void* into, void (*add)(void* into, PathRef name));
  int (*rename)(const void* disk, PathRef from, PathRef to);
  int (*link)(const void* disk, PathRef from, PathRef to);
  int (*remove)(const void* disk, PathRef path);
  int (*make_directory)(const void* disk, PathRef path, bool must_be_new);
  int (*remove_directory)(const void* disk, PathRef path);
  int (*sync_directory)(const void* disk, PathRef path);
  int (*lock)(const void* disk, PathRef path);
  void (*unlock)(const void* disk, PathRef path);
};

// Declared in RocksDB's c.cc, which exports no header for it.
struct rocksdb_env_t {
  Env* rep;
  bool is_default;
};

}  // extern "C"

namespace {

// Values of `Mode` and `Refusal` in ffi.rs.
enum Mode { kRead = 0, kCreate = 1, kReopen = 2 };
enum Refusal { kOk = 0, kNotFound = 1, kExists = 2, kIo = 3, kNoSpace = 4, kOff = 5, kLocked = 6, kNotEmpty = 7 };

IOStatus Status(int code, const std::string& path) {
  switch (code) {
    case kOk: return IOStatus::OK();
    case kNotFound: return IOStatus::PathNotFound("no such file", path);
    case kExists: return IOStatus::IOError("exists already", path);
    case kNoSpace: return IOStatus::NoSpace("injected ENOSPC", path);
    case kOff: return IOStatus::IOError("the simulated disk has no power", path);
    case kLocked: return IOStatus::IOError("lock hold by current process", path);
    case kNotEmpty: return IOStatus::IOError("directory not empty", path);
    default: return IOStatus::IOError("injected EIO", path);
  }
}

PathRef Ref(const std::string& path) { return {path.data(), path.size()}; }

struct Disk {
  const DiskOps* ops;
  const void* model;
  ~Disk() { ops->release(model); }
};

// One open file, read or written; all kinds of files share it.
struct Handle {
  std::shared_ptr<Disk> disk;
  uint64_t id;
  std::string path;

  Handle(std::shared_ptr<Disk> d, uint64_t i, std::string p) : disk(std::move(d)), id(i), path(std::move(p)) {}
  Handle(const Handle&) = delete;
  ~Handle() { disk->ops->close(disk->model, id); }

  IOStatus Read(uint64_t offset, size_t n, Slice* result, char* scratch) const {
    size_t got = 0;
    IOStatus s = Status(disk->ops->read(disk->model, id, offset, n, scratch, &got), path);
    *result = Slice(scratch, s.ok() ? got : 0);
    return s;
  }
};

using HandlePtr = std::unique_ptr<Handle>;

class SimSequentialFile final : public FSSequentialFile {
 public:
  explicit SimSequentialFile(HandlePtr h) : handle_(std::move(h)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    IOStatus s = handle_->Read(offset_, n, result, scratch);
    offset_ += result->size();
    return s;
  }
  IOStatus Skip(uint64_t n) override {
    offset_ += n;  // a read behind the end gives nothing, as the contract of Skip asks
    return IOStatus::OK();
  }

 private:
  HandlePtr handle_;
  uint64_t offset_ = 0;
};

class SimRandomAccessFile final : public FSRandomAccessFile {
 public:
  explicit SimRandomAccessFile(HandlePtr h) : handle_(std::move(h)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return handle_->Read(offset, n, result, scratch);
  }
  IOStatus GetFileSize(uint64_t* size) override {
    return Status(handle_->disk->ops->len(handle_->disk->model, handle_->id, size), handle_->path);
  }

 private:
  HandlePtr handle_;
};

class SimWritableFile final : public FSWritableFile {
 public:
  SimWritableFile(HandlePtr h, const FileOptions& options) : FSWritableFile(options), handle_(std::move(h)) {}
  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return Status(Ops().append(Model(), handle_->id, data.data(), data.size()), handle_->path);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return Status(Ops().truncate(Model(), handle_->id, size), handle_->path);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return Status(Ops().sync(Model(), handle_->id), handle_->path);
  }
  // The model has no cache of the process: appended bytes are with the system at once.
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  // Without this DB::SyncWAL is refused.
  bool IsSyncThreadSafe() const override { return true; }
  // A hint that writes may begin; nothing becomes durable by it.
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    uint64_t size = 0;
    Ops().len(Model(), handle_->id, &size);
    return size;
  }

 private:
  const DiskOps& Ops() const { return *handle_->disk->ops; }
  const void* Model() const { return handle_->disk->model; }
  HandlePtr handle_;
};

class SimDirectory final : public FSDirectory {
 public:
  SimDirectory(std::shared_ptr<Disk> disk, std::string path) : disk_(std::move(disk)), path_(std::move(path)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->sync_directory(disk_->model, Ref(path_)), path_);
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  std::shared_ptr<Disk> disk_;
  std::string path_;
};

struct SimFileLock final : public FileLock {
  explicit SimFileLock(std::string p) : path(std::move(p)) {}
  std::string path;
};

class NullLogger final : public Logger {
 public:
  NullLogger() : Logger(InfoLogLevel::FATAL_LEVEL) {}
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
  void LogHeader(const char*, va_list) override {}
};

class Jobs;

struct Job {
  std::shared_ptr<Jobs> jobs;  // shared: the Env may be gone when the last job ends
  void (*run)(void*);
  void* argument;
  void (*cancel)(void*);

  static void Run(void* self);
  static void Cancel(void* self);
};

// Background jobs (flushes, compactions, deletions) that RocksDB has scheduled.
//
// At first a job starts at once, on a thread of its own. Once they are queued instead, they run one at a time while the
// thread that uses the database waits: between two steps, and whenever a log is begun. Two threads that change one disk
// at a time of the machine's choosing would make it another disk in every run, down to which unlinked file a power
// failure brings back.
//
// Jobs may also be held back: a job then waits until it is released, as on a machine whose threads are slow, and the
// writes go on into a new log. RocksDB lets writers wait for a flush when a family has filled two buffers, and the
// simulator's only thread may not wait for itself: so nothing is held back over the beginning of a log.
class Jobs {
 public:
  struct Scheduled {
    Env* env;
    Job* job;
    Env::Priority priority;
    void* tag;
    void Start() const;
  };

  void Add(const Scheduled& scheduled) {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (queueing_) {
        (holding_ && !draining_ ? held_ : ready_).push_back(scheduled);
        return;
      }
      ++open_;
    }
    scheduled.Start();
  }
  void End() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (--open_ == 0) idle_.notify_all();
  }
  // Runs what is ready. Without a time limit on purpose: a limit would be measured by a clock, and the simulator lies
  // about clocks.
  //
  // A compaction that meets a full disk schedules itself again and again, and virtual time, which would end that, stands
  // still meanwhile: so only so many run at a time; the others wait for the next step.
  void Settle() {
    std::unique_lock<std::mutex> guard(mutex_);
    if (draining_) return;  // a job begins a log
    draining_ = true;
    for (int left = kJobsAtATime; left > 0 && !ready_.empty(); --left) {
      const Scheduled next = ready_.front();
      ready_.pop_front();
      ++open_;
      guard.unlock();
      next.Start();
      guard.lock();
      idle_.wait(guard, [this] { return open_ == 0; });
    }
    draining_ = false;
    guard.unlock();
    WaitIdle();
  }
  void WaitIdle() {
    std::unique_lock<std::mutex> guard(mutex_);
    idle_.wait(guard, [this] { return open_ == 0; });
  }
  void SetQueueing() {
    std::lock_guard<std::mutex> guard(mutex_);
    queueing_ = true;
  }
  void SetHolding() {
    std::lock_guard<std::mutex> guard(mutex_);
    queueing_ = holding_ = true;
  }
  // Nothing is held back any more; how many were. They run when the disk settles.
  size_t Release() {
    std::lock_guard<std::mutex> guard(mutex_);
    const size_t released = held_.size();
    ready_.insert(ready_.end(), held_.begin(), held_.end());
    held_.clear();
    return released;
  }
  void LogBegins() {
    Release();
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (!queueing_) return;
    }
    Settle();
  }
  // The waiting jobs of a database that closes are dropped. Returns how many.
  int Drop(void* tag, Env::Priority priority) {
    std::deque<Scheduled> dropped;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      for (auto* waiting : {&ready_, &held_}) {
        std::deque<Scheduled> kept;
        for (const Scheduled& job : *waiting) {
          (job.tag == tag && job.priority == priority ? dropped : kept).push_back(job);
        }
        waiting->swap(kept);
      }
      open_ += dropped.size();
    }
    for (const Scheduled& job : dropped) Job::Cancel(job.job);
    return static_cast<int>(dropped.size());
  }

 private:
  static constexpr int kJobsAtATime = 16;

  std::mutex mutex_;
  std::condition_variable idle_;
  uint64_t open_ = 0;  // running, or about to
  bool queueing_ = false;
  bool holding_ = false;
  bool draining_ = false;
  std::deque<Scheduled> ready_;
  std::deque<Scheduled> held_;
};

void Job::Run(void* self) {
  std::unique_ptr<Job> job(static_cast<Job*>(self));
  job->run(job->argument);
  job->jobs->End();
}

void Job::Cancel(void* self) {
  std::unique_ptr<Job> job(static_cast<Job*>(self));
  if (job->cancel) job->cancel(job->argument);
  job->jobs->End();
}

class SimFileSystem final : public FileSystem {
 public:
  SimFileSystem(std::shared_ptr<Disk> disk, std::shared_ptr<Jobs> jobs)
      : disk_(std::move(disk)), jobs_(std::move(jobs)) {}
  const char* Name() const override { return "PetuumSimulatedDisk"; }

  IOStatus NewSequentialFile(const std::string& f, const FileOptions&, std::unique_ptr<FSSequentialFile>* r,
                             IODebugContext*) override {
    HandlePtr h;
    IOStatus s = Open(f, kRead, &h);
    r->reset(s.ok() ? new SimSequentialFile(std::move(h)) : nullptr);
    return s;
  }
  IOStatus NewRandomAccessFile(const std::string& f, const FileOptions&, std::unique_ptr<FSRandomAccessFile>* r,
                               IODebugContext*) override {
    HandlePtr h;
    IOStatus s = Open(f, kRead, &h);
    r->reset(s.ok() ? new SimRandomAccessFile(std::move(h)) : nullptr);
    return s;
  }
  IOStatus NewWritableFile(const std::string& f, const FileOptions& o, std::unique_ptr<FSWritableFile>* r,
                           IODebugContext*) override {
    if (f.size() > 4 && f.compare(f.size() - 4, 4, ".log") == 0) jobs_->LogBegins();
    return OpenWritable(f, kCreate, o, r);
  }
  IOStatus ReopenWritableFile(const std::string& f, const FileOptions& o, std::unique_ptr<FSWritableFile>* r,
                              IODebugContext*) override {
    return OpenWritable(f, kReopen, o, r);
  }
  IOStatus NewDirectory(const std::string& d, const IOOptions&, std::unique_ptr<FSDirectory>* r,
                        IODebugContext*) override {
    bool is_directory = false;
    IOStatus s = Stat(d, nullptr, &is_directory);
    if (s.ok() && !is_directory) s = IOStatus::PathNotFound("not a directory", d);
    r->reset(s.ok() ? new SimDirectory(disk_, d) : nullptr);
    return s;
  }
  IOStatus FileExists(const std::string& f, const IOOptions&, IODebugContext*) override {
    bool is_directory = false;
    IOStatus s = Stat(f, nullptr, &is_directory);
    return s.IsPathNotFound() ? IOStatus::NotFound(f) : s;
  }
  IOStatus GetChildren(const std::string& d, const IOOptions&, std::vector<std::string>* r, IODebugContext*) override {
    r->clear();
    return Status(disk_->ops->list(disk_->model, Ref(d), r,
                                   [](void* into, PathRef name) {
                                     static_cast<std::vector<std::string>*>(into)->emplace_back(name.data, name.len);
                                   }),
                  d);
  }
  IOStatus DeleteFile(const std::string& f, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->remove(disk_->model, Ref(f)), f);
  }
  IOStatus CreateDir(const std::string& d, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->make_directory(disk_->model, Ref(d), true), d);
  }
  IOStatus CreateDirIfMissing(const std::string& d, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->make_directory(disk_->model, Ref(d), false), d);
  }
  IOStatus DeleteDir(const std::string& d, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->remove_directory(disk_->model, Ref(d)), d);
  }
  IOStatus GetFileSize(const std::string& f, const IOOptions&, uint64_t* size, IODebugContext*) override {
    bool is_directory = false;
    return Stat(f, size, &is_directory);
  }
  // A constant: no time of the machine may reach the simulation.
  IOStatus GetFileModificationTime(const std::string&, const IOOptions&, uint64_t* t, IODebugContext*) override {
    *t = 0;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->rename(disk_->model, Ref(from), Ref(to)), from);
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    return Status(disk_->ops->link(disk_->model, Ref(from), Ref(to)), from);
  }
  IOStatus LockFile(const std::string& f, const IOOptions&, FileLock** lock, IODebugContext*) override {
    IOStatus s = Status(disk_->ops->lock(disk_->model, Ref(f)), f);
    *lock = s.ok() ? new SimFileLock(f) : nullptr;
    return s;
  }
  IOStatus UnlockFile(FileLock* lock, const IOOptions&, IODebugContext*) override {
    auto* held = static_cast<SimFileLock*>(lock);
    disk_->ops->unlock(disk_->model, Ref(held->path));
    delete held;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions&, std::string* path, IODebugContext*) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* out, IODebugContext*) override {
    *out = path;
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is_directory, IODebugContext*) override {
    return Stat(path, nullptr, is_directory);
  }
  IOStatus NewLogger(const std::string&, const IOOptions&, std::shared_ptr<Logger>* r, IODebugContext*) override {
    *r = std::make_shared<NullLogger>();
    return IOStatus::OK();
  }
  // Neither asynchronous reads nor prefetch.
  void SupportedOps(int64_t& supported) override { supported = 0; }

 private:
  IOStatus Open(const std::string& path, Mode mode, HandlePtr* out) {
    uint64_t id = 0;
    IOStatus s = Status(disk_->ops->open(disk_->model, Ref(path), mode, &id), path);
    if (s.ok()) *out = std::make_unique<Handle>(disk_, id, path);
    return s;
  }
  IOStatus OpenWritable(const std::string& path, Mode mode, const FileOptions& options,
                        std::unique_ptr<FSWritableFile>* out) {
    HandlePtr h;
    IOStatus s = Open(path, mode, &h);
    out->reset(s.ok() ? new SimWritableFile(std::move(h), options) : nullptr);
    return s;
  }
  IOStatus Stat(const std::string& path, uint64_t* size, bool* is_directory) {
    uint64_t ignored = 0;
    return Status(disk_->ops->stat(disk_->model, Ref(path), size ? size : &ignored, is_directory), path);
  }

  std::shared_ptr<Disk> disk_;
  std::shared_ptr<Jobs> jobs_;
};

// Its users do not wait in real time: a failed compaction would, for a second.
class WakefulClock final : public SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "WakefulClock"; }
  void SleepForMicroseconds(int) override {}
};

class SimEnv final : public CompositeEnvWrapper {
 public:
  SimEnv(const std::shared_ptr<FileSystem>& fs, std::shared_ptr<Jobs> jobs)
      : CompositeEnvWrapper(Env::Default(), fs, std::make_shared<WakefulClock>(SystemClock::Default())), jobs_(std::move(jobs)) {}
  const char* Name() const override { return "PetuumSimulatedEnv"; }
  void Schedule(void (*run)(void*), void* argument, Priority priority, void* tag, void (*cancel)(void*)) override {
    jobs_->Add({this, new Job{jobs_, run, argument, cancel}, priority, tag});
  }
  int UnSchedule(void* tag, Priority priority) override {
    return jobs_->Drop(tag, priority) + CompositeEnvWrapper::UnSchedule(tag, priority);
  }
  void Start(Job* job, Priority priority, void* tag) {
    CompositeEnvWrapper::Schedule(Job::Run, job, priority, tag, Job::Cancel);
  }

 private:
  std::shared_ptr<Jobs> jobs_;
};

void Jobs::Scheduled::Start() const { static_cast<SimEnv*>(env)->Start(job, priority, tag); }

}  // namespace

extern "C" {

// Takes one reference to `model`, given back through `ops->release` when the last file system object is gone.
// `*jobs` is to be freed with petuum_sim_jobs_free; the result with rocksdb_env_destroy.
rocksdb_env_t* petuum_sim_env_create(const DiskOps* ops, const void* model, void** jobs) {
  std::shared_ptr<Disk> disk(new Disk{ops, model});
  auto counter = std::make_shared<Jobs>();
  *jobs = new std::shared_ptr<Jobs>(counter);
  return new rocksdb_env_t{new SimEnv(std::make_shared<SimFileSystem>(disk, counter), counter), false};
}

// The heights of memtables' skip lists come from this generator, which RocksDB seeds by the thread's address. They decide
// how full a memtable is, so when it is flushed and the log changes.
void petuum_sim_seed_thread(uint32_t seed) { Random::GetTLSInstance()->Reset(seed); }

void petuum_sim_jobs_settle(void* jobs) { (*static_cast<std::shared_ptr<Jobs>*>(jobs))->Settle(); }

void petuum_sim_jobs_wait_idle(void* jobs) { (*static_cast<std::shared_ptr<Jobs>*>(jobs))->WaitIdle(); }

void petuum_sim_jobs_queue(void* jobs) { (*static_cast<std::shared_ptr<Jobs>*>(jobs))->SetQueueing(); }

void petuum_sim_jobs_hold(void* jobs) { (*static_cast<std::shared_ptr<Jobs>*>(jobs))->SetHolding(); }

size_t petuum_sim_jobs_release(void* jobs) { return (*static_cast<std::shared_ptr<Jobs>*>(jobs))->Release(); }

void petuum_sim_jobs_free(void* jobs) { delete static_cast<std::shared_ptr<Jobs>*>(jobs); }

}  // extern "C"
