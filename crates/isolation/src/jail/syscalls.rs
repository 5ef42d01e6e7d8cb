//! The system calls that a command may make: what programs, compilers and interpreters use, and nothing else.
//!
//! What is not listed does not exist (`ENOSYS`), so that libraries fall back on what does. What would reach for the
//! walls themselves is refused (`EPERM`), which programs understand better.

mod list;

use std::collections::{BTreeMap, BTreeSet};

use libc as c;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use list::{ALLOWED, ALLOWED_HERE, REFUSED};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters, for this process and all that it starts. Where nothing bounds the memory of all processes
/// together, there are no files in memory without a name, since nobody could find them.
pub(super) fn apply(bounded: bool) -> Result<(), Box<dyn std::error::Error>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let listed = ALLOWED.iter().chain(ALLOWED_HERE).filter(|call| bounded || **call != c::SYS_memfd_create);
    let allow = allowing(listed.copied().collect(), arch);
    let refused = SeccompAction::Errno(c::EPERM as u32);
    let refuse: BpfProgram =
        SeccompFilter::new(refusals()?, SeccompAction::Allow, refused, arch)?.try_into()?;
    // The kernel asks all filters and takes the strictest answer; of two refusals, that of the last installed.
    apply_filter(&allow)?;
    apply_filter(&refuse)?;
    let pretended = SeccompAction::Errno(0);
    let pretend: BpfProgram =
        SeccompFilter::new(pretences()?, SeccompAction::Allow, pretended, arch)?.try_into()?;
    apply_filter(&pretend)?;
    Ok(())
}

/// The list as a program of the kernel's: one comparison for every gap in the numbers, instead of several for every
/// call. The kernel runs it for each call there is when it is installed, which is what a start would wait for.
fn allowing(listed: BTreeSet<i64>, arch: TargetArch) -> BpfProgram {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for call in listed.into_iter().filter_map(|call| u32::try_from(call).ok()) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == call => *last = call,
            Some(_) | None => runs.push((call, call)),
        }
    }
    let instruction = |code: u32, jt: usize, jf: usize, k: u32| sock_filter {
        code: code as u16,
        jt: u8::try_from(jt).unwrap_or(u8::MAX),
        jf: u8::try_from(jf).unwrap_or(u8::MAX),
        k,
    };
    let load = |offset: u32| instruction(c::BPF_LD | c::BPF_W | c::BPF_ABS, 0, 0, offset);
    let answer = |action: u32| instruction(c::BPF_RET | c::BPF_K, 0, 0, action);
    let (at_least, more, equal) = (
        c::BPF_JMP | c::BPF_JGE | c::BPF_K,
        c::BPF_JMP | c::BPF_JGT | c::BPF_K,
        c::BPF_JMP | c::BPF_JEQ | c::BPF_K,
    );
    // Where the call's number and the processor's kind stand in what the kernel shows.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    let mut program = vec![
        load(ARCH),
        instruction(equal, 1, 0, arch_number(arch)),
        answer(c::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    let comparisons = runs.len() * 2;
    for (index, (first, last)) in runs.into_iter().enumerate() {
        // The answers stand behind all comparisons: absent first, then allowed.
        let left = comparisons - index * 2;
        program.push(instruction(at_least, 0, left - 1, first));
        program.push(instruction(more, 0, left - 1, last));
    }
    program.push(answer(c::SECCOMP_RET_ERRNO | c::ENOSYS as u32));
    program.push(answer(c::SECCOMP_RET_ALLOW));
    program
}

/// What the kernel calls a kind of processor.
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

/// What seems to succeed and does nothing, since programs insist on it. The limit for crash dumps stays at one byte,
/// the one value at which the kernel starts no program of the host. And no process closes itself to the eyes of its
/// own user, who may be the one to find out what it has open; from its like it is protected anyway.
fn pretences() -> Result<Rules, seccompiler::BackendError> {
    let core = |argument: u8| number(argument, SeccompCmpOp::Eq, u64::from(c::RLIMIT_CORE));
    let given = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let mut rules = Rules::from([(c::SYS_prlimit64, vec![SeccompRule::new(vec![core(1)?, given])?])]);
    let closing = number(0, SeccompCmpOp::Eq, u64::from(c::PR_SET_DUMPABLE.unsigned_abs()))?;
    rules.insert(c::SYS_prctl, vec![SeccompRule::new(vec![closing])?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(c::SYS_setrlimit, vec![SeccompRule::new(vec![core(0)?])?]);
    Ok(rules)
}

fn refusals() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // A network namespace does not close AF_VSOCK and its like, so only these families exist at all.
    let families =
        [c::AF_UNIX, c::AF_INET, c::AF_INET6].map(|family| number(0, SeccompCmpOp::Ne, family as u64));
    let families = families.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.insert(c::SYS_socket, vec![SeccompRule::new(families)?]);
    // A new namespace would give capabilities inside it, and with them much of the kernel.
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
    // Putting words into the mouth of whoever looks at the terminal.
    let typing = [c::TIOCSTI, c::TIOCLINUX]
        .map(|request| SeccompRule::new(vec![number(1, SeccompCmpOp::Eq, request)?]));
    rules.insert(c::SYS_ioctl, typing.into_iter().collect::<Result<_, _>>()?);
    set_uid(&mut rules)?;
    Ok(rules)
}

/// Refuses to make programs that run as whoever owns them. In a workspace that is given directly that may be root.
fn set_uid(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let bits = [c::S_ISUID, c::S_ISGID].map(u64::from);
    let asked = |argument: u8, bit: u64| number(argument, SeccompCmpOp::MaskedEq(bit), bit);
    for (call, mode) in MODES.iter().chain(MODES_HERE) {
        let each = bits.map(|bit| SeccompRule::new(vec![asked(*mode, bit)?]));
        rules.insert(*call, each.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENS.iter().chain(OPENS_HERE) {
        // Without these flags the mode is whatever stood there.
        let makes = [c::O_CREAT, c::O_TMPFILE & !c::O_DIRECTORY].map(|flag| u64::from(flag.unsigned_abs()));
        let pairs = makes.iter().flat_map(|flag| bits.iter().map(move |bit| (*flag, *bit)));
        let each =
            pairs.map(|(flag, bit)| SeccompRule::new(vec![asked(*flags, flag)?, asked(flags + 1, bit)?]));
        rules.insert(*call, each.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Calls that set a mode, and which argument it is.
const MODES: &[(i64, u8)] =
    &[(c::SYS_fchmod, 1), (c::SYS_fchmodat, 2), (c::SYS_fchmodat2, 2), (c::SYS_mknodat, 2)];
/// Calls that may make a file, and which argument the flags are; the mode follows.
const OPENS: &[(i64, u8)] = &[(c::SYS_openat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] = &[(c::SYS_chmod, 1), (c::SYS_creat, 1), (c::SYS_mknod, 1)];
#[cfg(target_arch = "x86_64")]
const OPENS_HERE: &[(i64, u8)] = &[(c::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];
#[cfg(not(target_arch = "x86_64"))]
const OPENS_HERE: &[(i64, u8)] = &[];

/// A condition on an argument. The kernel looks at 32 bits of these, and so do we.
fn number(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_both_allowed_and_refused() {
        let both: Vec<_> = ALLOWED.iter().chain(ALLOWED_HERE).filter(|call| REFUSED.contains(call)).collect();
        assert_eq!(both, Vec::<&i64>::new());
    }

    #[test]
    fn what_gives_a_program_the_kernel_is_not_on_the_list() {
        // The last takes a mode from memory, where no list can look.
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
