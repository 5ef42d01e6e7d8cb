//! Which share of a long list one run takes: every fourth case, beginning with another one each day, or all of them.

use std::time::SystemTime;

/// The number of a share, to repeat a run; `all` takes every case, as `cargo xtask deep` does.
const VARIABLE: &str = "CHOIR_SHARE";
/// All cases are taken once in as many days.
const SHARES: usize = 4;
const SECONDS_PER_DAY: u64 = 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    /// Every case whose index leaves this remainder.
    Every(usize),
}

impl Share {
    /// What the environment asks for, or the share of today; printed, so that a failure can be repeated.
    pub(crate) fn from_environment() -> Self {
        let share = match std::env::var(VARIABLE).ok().as_deref() {
            None | Some("") => Self::Every(today()),
            Some(text) => {
                Self::parse(text).unwrap_or_else(|| panic!("{VARIABLE}={text} is neither `all` nor a number"))
            }
        };
        match share {
            Self::All => println!("all cases"),
            Self::Every(n) => {
                println!("share {n} of {SHARES}; again with {VARIABLE}={n}, everything with {VARIABLE}=all")
            }
        }
        share
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "all" {
            Some(Self::All)
        } else {
            text.parse().ok().map(|n: usize| Self::Every(n % SHARES))
        }
    }

    pub(crate) fn of<T>(self, cases: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let taken = move |index: usize| match self {
            Self::All => true,
            Self::Every(n) => index % SHARES == n,
        };
        cases.enumerate().filter(move |(index, _)| taken(*index)).map(|(_, case)| case)
    }
}

fn today() -> usize {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    usize::try_from(since.as_secs() / SECONDS_PER_DAY).unwrap_or_default() % SHARES
}

#[test]
fn the_shares_of_all_days_together_are_every_case_once() {
    let mut taken: Vec<u32> = (0..SHARES).flat_map(|n| Share::Every(n).of(0..10_u32)).collect();
    taken.sort_unstable();
    assert_eq!(taken, Vec::from_iter(0..10));
    assert_eq!(Share::All.of(0..10).count(), 10);
    assert_eq!(
        (Share::parse("all"), Share::parse("7"), Share::parse("x")),
        (Some(Share::All), Some(Share::Every(3)), None)
    );
}
