//! Generates the wire types from `proto/` with a compiler written in Rust: nobody needs protoc.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protos = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    let files = ["data", "admin", "raft"].map(|name| protos.join(format!("petuum/v1/{name}.proto")));
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    let descriptors = protox::compile(&files, [&protos])?;
    let public = protox::compile(&files[..2], [&protos])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("public.bin"), prost::Message::encode_to_vec(&public))?;
    tonic_prost_build::configure()
        // Payloads are slices of the message they came in.
        .bytes(".petuum.v1.ShardMessage.message")
        .bytes(".petuum.v1.Detail.record")
        .bytes(".petuum.v1.RowChunk.values")
        .bytes(".petuum.v1.RaftRecord")
        .bytes(".petuum.v1.RaftCall.record")
        .bytes(".petuum.v1.SnapshotFrame.piece")
        .bytes(".petuum.v1.SnapshotProgress.answer")
        .bytes(".petuum.v1.ProposeRequest.entry")
        .bytes(".petuum.v1.ProposeResponse.answer")
        .compile_fds(descriptors)?;
    Ok(())
}
