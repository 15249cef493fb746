//! `cargo xtask`: prints what the checks find; exit code 1 if they find anything.

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "a command prints")]
fn main() -> ExitCode {
    match xtask::check_all(&xtask::tree::root()) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("the checks could not run: {error}");
            ExitCode::FAILURE
        }
    }
}
