//! Compiles the C++ half of the simulated disk against the headers of the RocksDB that `librocksdb-sys` binds.
//!
//! The defines must equal those the library itself was built with: they change the layout of its classes.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

const SOURCE: &str = "src/disk/shim.cc";

fn main() -> ExitCode {
    println!("cargo::rustc-check-cfg=cfg(tokio_unstable)");
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=DEP_ROCKSDB_CARGO_MANIFEST_DIR");
    match headers() {
        Ok(rocksdb) => {
            compile(&rocksdb);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            println!("cargo::error={reason}");
            ExitCode::FAILURE
        }
    }
}

/// The source folder of RocksDB inside `librocksdb-sys`, which tells it to crates that depend on it directly.
fn headers() -> Result<PathBuf, String> {
    let bindings = env::var_os("DEP_ROCKSDB_CARGO_MANIFEST_DIR").ok_or(
        "librocksdb-sys did not say where its sources are (DEP_ROCKSDB_CARGO_MANIFEST_DIR is unset): petuum-sim must \
         depend on it directly, at the version named in the workspace",
    )?;
    let rocksdb = PathBuf::from(bindings).join("rocksdb");
    let needed = rocksdb.join("env/composite_env_wrapper.h");
    if needed.is_file() {
        Ok(rocksdb)
    } else {
        Err(format!(
            "expected RocksDB's header {}, which is missing: another version of librocksdb-sys?",
            needed.display()
        ))
    }
}

fn compile(rocksdb: &std::path::Path) {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .file(SOURCE)
        .include(rocksdb.join("include"))
        .include(rocksdb)
        .define("NDEBUG", "1")
        .define("HAVE_ALIGNED_NEW", None)
        .define("HAVE_UINT128_EXTENSION", None)
        .define("ROCKSDB_PLATFORM_POSIX", None)
        .define("ROCKSDB_LIB_IO_POSIX", None)
        // RocksDB's headers, not ours, have unused parameters.
        .flag("-Wno-unused-parameter")
        .flag("-include")
        .flag("cstdint");
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => build.define("OS_MACOSX", None),
        _ => build.define("OS_LINUX", None),
    };
    build.compile("petuum_sim_disk");
}
