//! The program of a pod's sandbox: it holds the namespaces, reaps orphans and ends when asked to.
//!
//! It is written here as machine code, so that no compiler and no foreign source is needed. In words:
//!
//! ```text
//! rt_sigprocmask(SIG_BLOCK, {SIGINT, SIGTERM})     first processes ignore signals they neither block nor handle
//! rt_sigaction(SIGCHLD, SIG_IGN)                   the kernel then reaps orphans by itself
//! do { rt_sigtimedwait({SIGINT, SIGTERM}) } while it failed
//! exit_group(0)
//! ```

use crate::error::{Error, Result};

/// Where the file is mapped.
const BASE: u64 = 0x40_0000;
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const CODE: usize = FILE_HEADER + PROGRAM_HEADER;

/// Bit `n - 1` stands for signal `n`: SIGINT is 2, SIGTERM is 15.
const SIGNALS: u64 = 1 << 1 | 1 << 14;
/// Handler SIG_IGN, no flags, no restorer, empty mask.
const IGNORE: [u64; 4] = [1, 0, 0, 0];

/// The program as an ELF file.
pub fn program() -> Result<Vec<u8>> {
    if std::env::consts::ARCH != "x86_64" {
        let reason = format!("there is no pause program for {} yet", std::env::consts::ARCH);
        return Err(Error::Image { image: "pause".to_owned(), reason });
    }
    Ok(x86_64())
}

fn x86_64() -> Vec<u8> {
    // Data lies behind the code; its place is known once the code's length is.
    let length = code(0, 0).len();
    let signals = CODE + length;
    let code = code(signals, signals + 8);
    let total = (signals + 8 + 32) as u64;

    let mut file = Vec::new();
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(2_u16.to_le_bytes()); // executable
    file.extend(62_u16.to_le_bytes()); // x86-64
    file.extend(1_u32.to_le_bytes());
    file.extend((BASE + CODE as u64).to_le_bytes()); // entry
    file.extend((FILE_HEADER as u64).to_le_bytes()); // program headers
    file.extend(0_u64.to_le_bytes()); // no sections
    file.extend(0_u32.to_le_bytes());
    for value in [FILE_HEADER as u16, PROGRAM_HEADER as u16, 1, 64, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes()); // load
    file.extend(5_u32.to_le_bytes()); // readable, executable
    for value in [0, BASE, BASE, total, total, 0x1000] {
        file.extend(value.to_le_bytes());
    }
    file.extend(code);
    file.extend(SIGNALS.to_le_bytes());
    file.extend(IGNORE.iter().flat_map(|word| word.to_le_bytes()));
    file
}

/// The instructions, with the offsets of the signal set and of the action in the file.
fn code(signals: usize, action: usize) -> Vec<u8> {
    const ZERO_SECOND_AND_SIZE: [u8; 8] = [0x31, 0xd2, 0x41, 0xba, 8, 0, 0, 0]; // xor edx,edx; mov r10d,8
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    let mut code = Vec::new();
    // An address relative to the instruction's end.
    let address = |code: &mut Vec<u8>, register: u8, target: usize| {
        code.extend([0x48, 0x8d, register]); // lea register,[rip+…]
        let end = CODE + code.len() + 4;
        let distance = i32::try_from(target as i64 - end as i64).unwrap_or_default();
        code.extend(distance.to_le_bytes());
    };
    const TO_RSI: u8 = 0x35;
    const TO_RDI: u8 = 0x3d;

    code.extend([0x31, 0xff]); // xor edi,edi: SIG_BLOCK
    address(&mut code, TO_RSI, signals);
    code.extend(ZERO_SECOND_AND_SIZE);
    code.extend([0xb8, 14, 0, 0, 0]); // mov eax,14: rt_sigprocmask
    code.extend(SYSCALL);

    code.extend([0xbf, 17, 0, 0, 0]); // mov edi,17: SIGCHLD
    address(&mut code, TO_RSI, action);
    code.extend(ZERO_SECOND_AND_SIZE);
    code.extend([0xb8, 13, 0, 0, 0]); // mov eax,13: rt_sigaction
    code.extend(SYSCALL);

    let wait = code.len();
    address(&mut code, TO_RDI, signals);
    code.extend([0x31, 0xf6]); // xor esi,esi: no details
    code.extend(ZERO_SECOND_AND_SIZE); // no time limit
    code.extend([0xb8, 128, 0, 0, 0]); // mov eax,128: rt_sigtimedwait
    code.extend(SYSCALL);
    code.extend([0x85, 0xc0]); // test eax,eax
    let back = i8::try_from(wait as i64 - (code.len() as i64 + 2)).unwrap_or_default();
    code.extend([0x78, back.to_le_bytes()[0]]); // js wait

    code.extend([0x31, 0xff]); // xor edi,edi
    code.extend([0xb8, 231, 0, 0, 0]); // mov eax,231: exit_group
    code.extend(SYSCALL);
    code
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn it_waits_and_ends_when_asked_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pause");
        fs::write(&path, program().unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(&path).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().unwrap().is_none());
        // Ignored SIGCHLD: the kernel reaps for it.
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        assert_ne!(u64::from_str_radix(ignored, 16).unwrap() & 1 << 16, 0, "{status}");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
