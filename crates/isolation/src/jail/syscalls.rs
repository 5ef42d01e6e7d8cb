//! The system calls that a command may make: those that programs, compilers and interpreters use, and no others.
//!
//! An unlisted call fails with `ENOSYS`, so that libraries use their fallbacks. A call that would attack the
//! isolation itself fails with `EPERM`, which programs handle better.

mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::num::TryFromIntError;

use libc as c;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use list::{ALLOWED, ALLOWED_HERE, REFUSED};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters for this process and its children. Where no control group limits memory, `memfd_create` is
/// not allowed, because the memory of such files could not be attributed.
pub(super) fn apply(bounded: bool) -> Result<(), Box<dyn std::error::Error>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let listed = ALLOWED.iter().chain(ALLOWED_HERE).filter(|call| bounded || **call != c::SYS_memfd_create);
    let refused = SeccompAction::Errno(c::EPERM as u32);
    let refuse: BpfProgram =
        SeccompFilter::new(refusals()?, SeccompAction::Allow, refused, arch)?.try_into()?;
    // The kernel runs all filters and takes the strictest result; of two errors, that of the filter installed last.
    apply_filter(&by_number(listed.copied().collect(), arch)?)?;
    apply_filter(&refuse)?;
    let pretended = SeccompAction::Errno(0);
    let pretend: BpfProgram =
        SeccompFilter::new(faked_calls()?, SeccompAction::Allow, pretended, arch)?.try_into()?;
    apply_filter(&pretend)?;
    Ok(())
}

/// The lists compiled to a BPF program as a binary search. The kernel runs the program once for every system call
/// number when it is installed, so a linear search would delay each start.
fn by_number(allowed: BTreeSet<i64>, arch: TargetArch) -> Result<BpfProgram, TryFromIntError> {
    const ABSENT: u32 = c::SECCOMP_RET_ERRNO | c::ENOSYS as u32;
    const REFUSAL: u32 = c::SECCOMP_RET_ERRNO | c::EPERM as u32;
    // Offsets of the call number and the architecture in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    let answers = allowed.into_iter().map(|call| (call, c::SECCOMP_RET_ALLOW));
    let answers: BTreeMap<i64, u32> = answers.chain(REFUSED.iter().map(|call| (*call, REFUSAL))).collect();
    let mut spans = vec![(0, ABSENT)];
    for (call, answer) in answers {
        let call = u32::try_from(call)?;
        // The previous span ends with an unlisted call, which may be this one.
        if spans.last().is_some_and(|(first, _)| *first == call) {
            spans.pop();
        }
        if spans.last().is_none_or(|(_, before)| *before != answer) {
            spans.push((call, answer));
        }
        spans.push((call + 1, ABSENT));
    }
    let load = |offset: u32| instruction(c::BPF_LD | c::BPF_W | c::BPF_ABS, 0, offset);
    let mut program = vec![load(ARCH)];
    program.push(instruction(c::BPF_JMP | c::BPF_JEQ | c::BPF_K, 1, arch_number(arch)));
    program.push(answer(c::SECCOMP_RET_KILL_PROCESS));
    program.push(load(NUMBER));
    program.extend(search(&spans)?);
    Ok(program)
}

/// Code that returns the action for a number. Each span reaches to the next.
fn search(spans: &[(u32, u32)]) -> Result<BpfProgram, TryFromIntError> {
    let (low, high) = spans.split_at(spans.len() / 2);
    let Some((first, last)) = high.first() else { return Ok(Vec::new()) };
    if low.is_empty() {
        return Ok(vec![answer(*last)]);
    }
    let (below, above) = (search(low)?, search(high)?);
    let mut program =
        vec![instruction(c::BPF_JMP | c::BPF_JGE | c::BPF_K, u8::try_from(below.len())?, *first)];
    program.extend(below);
    program.extend(above);
    Ok(program)
}

fn answer(action: u32) -> sock_filter {
    instruction(c::BPF_RET | c::BPF_K, 0, action)
}

/// One instruction; a comparison that holds skips this many instructions.
fn instruction(code: u32, skip: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: skip, jf: 0, k }
}

/// The kernel's constant for an architecture.
fn arch_number(arch: TargetArch) -> u32 {
    const SIXTY_FOUR: u32 = 0x8000_0000;
    const LITTLE: u32 = 0x4000_0000;
    let machine = match arch {
        TargetArch::x86_64 => c::EM_X86_64,
        TargetArch::aarch64 => c::EM_AARCH64,
        TargetArch::riscv64 => c::EM_RISCV,
    };
    u32::from(machine) | SIXTY_FOUR | LITTLE
}

/// Calls that pretend to succeed and do nothing, because programs insist on them. The core limit stays at one byte,
/// the only value at which the kernel runs no crash handler of the host. And no process may make itself undumpable:
/// the monitor, which may run as the same user, must be able to see its open files. Other processes in the cell
/// cannot inspect it anyway.
fn faked_calls() -> Result<Rules, seccompiler::BackendError> {
    let core = |argument: u8| number(argument, SeccompCmpOp::Eq, u64::from(c::RLIMIT_CORE));
    let given = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let mut rules = Rules::from([(c::SYS_prlimit64, vec![SeccompRule::new(vec![core(1)?, given])?])]);
    let closing = number(0, SeccompCmpOp::Eq, u64::from(c::PR_SET_DUMPABLE.unsigned_abs()))?;
    rules.insert(c::SYS_prctl, vec![SeccompRule::new(vec![closing])?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(c::SYS_setrlimit, vec![SeccompRule::new(vec![core(0)?])?]);
    Ok(rules)
}

/// Calls that are allowed only with certain arguments.
fn refusals() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = Rules::new();
    // A network namespace does not isolate AF_VSOCK and some other families, so allow only these.
    let families =
        [c::AF_UNIX, c::AF_INET, c::AF_INET6].map(|family| number(0, SeccompCmpOp::Ne, family as u64));
    let families = families.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.insert(c::SYS_socket, vec![SeccompRule::new(families)?]);
    // A new namespace would grant capabilities inside it, which expose much more of the kernel.
    let spaces = [
        c::CLONE_NEWUSER,
        c::CLONE_NEWNS,
        c::CLONE_NEWPID,
        c::CLONE_NEWNET,
        c::CLONE_NEWIPC,
        c::CLONE_NEWUTS,
        c::CLONE_NEWCGROUP,
    ];
    let spaces = spaces.map(|flag| {
        let flag = flag as u64;
        SeccompRule::new(vec![number(0, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    rules.insert(c::SYS_clone, spaces.into_iter().collect::<Result<_, _>>()?);
    // Injecting input into the user's terminal.
    let typing = [c::TIOCSTI, c::TIOCLINUX]
        .map(|request| SeccompRule::new(vec![number(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(c::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    set_uid(&mut rules)?;
    Ok(rules)
}

/// Refuses to create set-uid and set-gid files. In a directly mounted workspace their owner may be root.
fn set_uid(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let bits = [c::S_ISUID, c::S_ISGID].map(u64::from);
    let asked = |argument: u8, bit: u64| number(argument, SeccompCmpOp::MaskedEq(bit), bit);
    for (call, mode) in MODES.iter().chain(MODES_HERE) {
        let each = bits.map(|bit| SeccompRule::new(vec![asked(*mode, bit)?]));
        rules.insert(*call, each.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENS.iter().chain(OPENS_HERE) {
        // Without these flags the call ignores the mode argument.
        let makes = [c::O_CREAT, c::O_TMPFILE & !c::O_DIRECTORY].map(|flag| u64::from(flag.unsigned_abs()));
        let pairs = makes.iter().flat_map(|flag| bits.iter().map(move |bit| (*flag, *bit)));
        let each =
            pairs.map(|(flag, bit)| SeccompRule::new(vec![asked(*flags, flag)?, asked(flags + 1, bit)?]));
        rules.insert(*call, each.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Calls that set a mode, with the index of that argument.
const MODES: &[(i64, u8)] =
    &[(c::SYS_fchmod, 1), (c::SYS_fchmodat, 2), (c::SYS_fchmodat2, 2), (c::SYS_mknodat, 2)];
/// Calls that may create a file, with the index of the flags; the mode follows.
const OPENS: &[(i64, u8)] = &[(c::SYS_openat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] = &[(c::SYS_chmod, 1), (c::SYS_creat, 1), (c::SYS_mknod, 1)];
#[cfg(target_arch = "x86_64")]
const OPENS_HERE: &[(i64, u8)] = &[(c::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OPENS_HERE: &[(i64, u8)] = &[];

/// A condition on an argument. The kernel uses only 32 bits of these arguments, and so does the filter.
fn number(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the program as the kernel would.
    fn ask(program: &BpfProgram, arch: u32, call: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let holds = match u32::from(code) {
                code if code == c::BPF_LD | c::BPF_W | c::BPF_ABS => {
                    loaded = if k == 0 { call } else { arch };
                    continue;
                }
                code if code == c::BPF_RET | c::BPF_K => return k,
                code if code == c::BPF_JMP | c::BPF_JEQ | c::BPF_K => loaded == k,
                code if code == c::BPF_JMP | c::BPF_JGE | c::BPF_K => loaded >= k,
                code => panic!("{code}"),
            };
            at += usize::from(if holds { jt } else { jf });
        }
    }

    #[test]
    fn every_system_call_gets_its_listed_action() {
        let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let allowed: BTreeSet<i64> = ALLOWED.iter().chain(ALLOWED_HERE).copied().collect();
        let program = by_number(allowed.clone(), arch).unwrap();
        for call in (0..2_000).chain([0x4000_0000, 0x4000_003b, u32::MAX]) {
            let wanted = if allowed.contains(&call.into()) {
                c::SECCOMP_RET_ALLOW
            } else if REFUSED.contains(&call.into()) {
                c::SECCOMP_RET_ERRNO | c::EPERM as u32
            } else {
                c::SECCOMP_RET_ERRNO | c::ENOSYS as u32
            };
            assert_eq!(ask(&program, arch_number(arch), call), wanted, "{call}");
        }
        assert_eq!(ask(&program, 3, 0), c::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn nothing_is_both_allowed_and_refused() {
        let both: Vec<_> = ALLOWED.iter().chain(ALLOWED_HERE).filter(|call| REFUSED.contains(call)).collect();
        assert_eq!(both, Vec::<&i64>::new());
    }

    #[test]
    fn dangerous_system_calls_are_not_listed() {
        // The last one takes its mode from memory, which a filter cannot read.
        for call in [
            c::SYS_io_uring_setup,
            c::SYS_clone3,
            c::SYS_memfd_secret,
            c::SYS_kcmp,
            c::SYS_mbind,
            c::SYS_openat2,
        ] {
            assert!(!ALLOWED.contains(&call) && !ALLOWED_HERE.contains(&call), "{call}");
        }
    }
}
