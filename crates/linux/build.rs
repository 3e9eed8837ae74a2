//! Compiles the programs of `bpf/` with clang. Without clang the crate is built as well, and says what is missing when it is
//! asked to load them.

use std::path::Path;
use std::process::Command;

/// Names of clang, the plain one first.
const NAMES: [&str; 8] = ["clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16", "clang-14"];

fn main() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    println!("cargo:rerun-if-changed={}", sources.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let mut missing = None;
    for name in ["pink.bpf", "cost.bpf", "bridge.bpf", "police.bpf"] {
        let target = Path::new(&out).join(format!("{name}.o"));
        if let Err(why) = compile(&sources.join(format!("{name}.c")), &target) {
            // An empty object; that it cannot be written shows when it is included.
            let _ = std::fs::write(&target, []);
            missing = Some(why);
        }
    }
    if let Some(why) = &missing {
        println!("cargo:warning=the programs of the kernel's packet path are not built: {why}");
    }
    println!("cargo:rustc-env=PENSTOCK_BPF_MISSING={}", missing.unwrap_or_default());
}

/// Compiles with the first clang that there is.
fn compile(source: &Path, target: &Path) -> Result<(), String> {
    let given = std::env::var("CLANG").ok();
    let names: Vec<&str> = given.as_deref().map_or_else(|| NAMES.to_vec(), |name| vec![name]);
    for name in names {
        let mut command = Command::new(name);
        command.args(["-O2", "-g", "-Wall", "-target", "bpf", "-mcpu=v3", "-c"]).arg(source).arg("-o").arg(target);
        let Ok(output) = command.output() else { continue };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = said.lines().find(|line| line.contains("error")).unwrap_or("it failed").to_owned();
        return if output.status.success() { Ok(()) } else { Err(format!("{name}: {line}")) };
    }
    Err("clang was not found (apt install clang)".into())
}
