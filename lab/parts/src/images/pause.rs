//! The program of a pod's sandbox: it holds the namespaces, reaps orphans and ends when asked to.
//!
//! It is written here as machine code, so that no compiler and no foreign source is needed. In pseudocode:
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
const FILE_HEADER: u16 = 64;
const PROGRAM_HEADER: u16 = 56;
/// Where the code begins, and after it the signal set and the action; a test holds them to what is written.
const CODE: u16 = FILE_HEADER + PROGRAM_HEADER;
const SIGNALS_AT: u16 = CODE + 88;
const IGNORE_AT: u16 = SIGNALS_AT + 8;
const END: u16 = IGNORE_AT + 32;

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
    let mut file = Vec::new();
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(2_u16.to_le_bytes()); // executable
    file.extend(62_u16.to_le_bytes()); // x86-64
    file.extend(1_u32.to_le_bytes());
    file.extend((BASE + u64::from(CODE)).to_le_bytes()); // entry
    file.extend(u64::from(FILE_HEADER).to_le_bytes()); // program headers
    file.extend(0_u64.to_le_bytes()); // no sections
    file.extend(0_u32.to_le_bytes());
    for value in [FILE_HEADER, PROGRAM_HEADER, 1, 64, 0, 0] {
        file.extend(value.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes()); // load
    file.extend(5_u32.to_le_bytes()); // readable, executable
    for value in [0, BASE, BASE, u64::from(END), u64::from(END), 0x1000] {
        file.extend(value.to_le_bytes());
    }
    write_code(&mut file);
    file.extend(SIGNALS.to_le_bytes());
    file.extend(IGNORE.iter().flat_map(|word| word.to_le_bytes()));
    file
}

/// Appends the instructions to the headers.
fn write_code(file: &mut Vec<u8>) {
    const ZERO_THIRD_AND_SIZE: [u8; 8] = [0x31, 0xd2, 0x41, 0xba, 8, 0, 0, 0]; // xor edx,edx; mov r10d,8
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const TO_RSI: u8 = 0x35;
    const TO_RDI: u8 = 0x3d;
    // Distances count from the end of the instruction.
    let address = |file: &mut Vec<u8>, register: u8, target: u16| {
        file.extend([0x48, 0x8d, register]); // lea register,[rip+…]
        let end = i32::try_from(file.len() + 4).unwrap_or_default();
        file.extend((i32::from(target) - end).to_le_bytes());
    };

    file.extend([0x31, 0xff]); // xor edi,edi: SIG_BLOCK
    address(file, TO_RSI, SIGNALS_AT);
    file.extend(ZERO_THIRD_AND_SIZE);
    file.extend([0xb8, 14, 0, 0, 0]); // mov eax,14: rt_sigprocmask
    file.extend(SYSCALL);

    file.extend([0xbf, 17, 0, 0, 0]); // mov edi,17: SIGCHLD
    address(file, TO_RSI, IGNORE_AT);
    file.extend(ZERO_THIRD_AND_SIZE);
    file.extend([0xb8, 13, 0, 0, 0]); // mov eax,13: rt_sigaction
    file.extend(SYSCALL);

    address(file, TO_RDI, SIGNALS_AT); // wait:
    file.extend([0x31, 0xf6]); // xor esi,esi: no details
    file.extend(ZERO_THIRD_AND_SIZE); // no time limit
    file.extend([0xb8, 128, 0, 0, 0]); // mov eax,128: rt_sigtimedwait
    file.extend(SYSCALL);
    file.extend([0x85, 0xc0]); // test eax,eax
    file.extend([0x78, 0xe4]); // js wait, 28 bytes back

    file.extend([0x31, 0xff]); // xor edi,edi
    file.extend([0xb8, 231, 0, 0, 0]); // mov eax,231: exit_group
    file.extend(SYSCALL);
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
    fn everything_is_where_it_is_looked_for() {
        let file = x86_64();
        let at = |offset: u16| u64::from_le_bytes(file[usize::from(offset)..][..8].try_into().unwrap());
        assert_eq!((at(SIGNALS_AT), at(IGNORE_AT)), (SIGNALS, IGNORE[0]));
        assert_eq!(file.len(), usize::from(END));
    }

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
