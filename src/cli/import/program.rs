//! Which program a shell line is about: what prepares, wraps or interprets it is looked through.

use super::words;

/// A program that runs another: how many words stand between its options and that one, and which of
/// its options take a word of their own.
struct Wrapper {
    names: &'static [&'static str],
    operands: usize,
    with_value: &'static [&'static str],
}

const WRAPPERS: [Wrapper; 12] = [
    Wrapper {
        names: &["nohup", "setsid", "exec", "builtin", "chronic", "cronic", "time", "xvfb-run", "busybox", "command"],
        operands: 0,
        with_value: &["-n", "-s"],
    },
    Wrapper { names: &["nice"], operands: 0, with_value: &["-n"] },
    Wrapper { names: &["ionice"], operands: 0, with_value: &["-c", "-n"] },
    Wrapper { names: &["chrt", "taskset", "lckdo"], operands: 1, with_value: &["-T", "-P", "-D"] },
    Wrapper { names: &["timeout"], operands: 1, with_value: &["-s", "-k"] },
    Wrapper { names: &["flock"], operands: 1, with_value: &["-w", "-E"] },
    Wrapper { names: &["setlock"], operands: 1, with_value: &[] },
    Wrapper { names: &["stdbuf"], operands: 0, with_value: &["-i", "-o", "-e"] },
    Wrapper { names: &["env"], operands: 0, with_value: &["-u", "-C"] },
    Wrapper { names: &["sudo", "doas", "runuser"], operands: 0, with_value: &["-u", "-g", "-h", "-p", "-C", "-U"] },
    Wrapper { names: &["su"], operands: 1, with_value: &["-s", "-g", "-G"] },
    Wrapper { names: &["systemd-cat", "systemd-inhibit"], operands: 0, with_value: &["-t", "-p"] },
];

/// Wrappers that take a line for the shell behind `-c`.
const LINE_TAKING: [&str; 3] = ["flock", "su", "runuser"];

/// Programs whose next word but options says what they run.
const LAUNCHERS: [(&str, &str); 4] = [("bundle", "exec"), ("poetry", "run"), ("pipenv", "run"), ("uv", "run")];

/// Shells, and what reads a script: their options with a word of their own.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "csh", "tcsh"];
const INTERPRETERS: [(&str, &[&str]); 9] = [
    ("python", &["-W", "-X", "-Q"]),
    ("pypy", &["-W", "-X"]),
    ("perl", &["-I"]),
    ("ruby", &["-I", "-r"]),
    ("php", &["-c", "-d"]),
    ("node", &["-r"]),
    ("nodejs", &["-r"]),
    ("rscript", &[]),
    ("tclsh", &[]),
];

/// What goes before the program that a line is about.
const PREPARING: [&str; 18] = [
    "cd", "test", "[", "[[", "sleep", "export", ".", "source", "umask", "ulimit", "set", "unset", "true", ":", "exit",
    "pushd", "mkdir", "trap",
];
const RESERVED: [&str; 13] =
    ["{", "}", "!", "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "time"];

/// Nobody nests deeper, and a text made to nest must not run away.
const DEEPEST: u32 = 8;

/// The program that a line is about, by its path or name; `None` if there is no word in it.
pub(super) fn of(line: &str) -> Option<String> {
    of_depth(line, DEEPEST)
}

fn of_depth(line: &str, depth: u32) -> Option<String> {
    let commands = words::cut(line).commands;
    let bare: Vec<&[String]> = commands.iter().map(|words| without_prefix(words)).filter(|c| !c.is_empty()).collect();
    let main = bare.iter().find(|words| !prepares(words)).or(bare.first())?;
    program(main, depth)
}

/// Without `if`, `{` and assignments.
fn without_prefix(words: &[String]) -> &[String] {
    let is_prefix = |word: &&String| RESERVED.contains(&word.as_str()) || is_assignment(word);
    &words[words.iter().take_while(is_prefix).count()..]
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn prepares(words: &[String]) -> bool {
    let asks = words[0] == "command" && words.get(1).is_some_and(|option| option.starts_with("-v"));
    // perl -e 'sleep int(rand(3600))', where a crontab spreads load.
    let sleeps = words.iter().any(|word| word.starts_with("sleep "));
    asks || sleeps || PREPARING.contains(&words[0].as_str())
}

fn program(words: &[String], depth: u32) -> Option<String> {
    let words = without_prefix(words);
    let (first, rest) = words.split_first()?;
    let name = base_name(first);
    if depth == 0 {
        return Some(first.clone());
    }
    let inner = match name {
        "run-parts" => rest.iter().rfind(|word| !word.starts_with('-')).map(|folder| folder_name(folder)),
        "java" => jar(rest),
        name if SHELLS.contains(&name) => through_shell(rest, depth),
        _ => through_wrapper(name, rest, depth)
            .or_else(|| through_launcher(name, rest, depth))
            .or_else(|| through_interpreter(name, rest)),
    };
    inner.or_else(|| Some(first.clone()))
}

fn through_wrapper(name: &str, rest: &[String], depth: u32) -> Option<String> {
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))?;
    if let (true, Some(line)) = (LINE_TAKING.contains(&name), line_of_option(rest)) {
        return of_depth(line, depth - 1);
    }
    let mut rest = rest;
    let mut operands = wrapper.operands;
    while let Some((word, behind)) = rest.split_first() {
        // `su - root`, `flock 9 ...`; what follows the operands is the program.
        if word.starts_with('-') {
            let valued = wrapper.with_value.contains(&word.as_str());
            rest = behind.get(usize::from(valued)..).unwrap_or_default();
        } else if operands > 0 {
            operands -= 1;
            rest = behind;
        } else {
            return program(rest, depth - 1);
        }
    }
    None
}

/// The line behind `-c`, `-lc` and the like.
fn line_of_option(words: &[String]) -> Option<&str> {
    let is_c = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let at = words.iter().position(is_c)?;
    // Other options end with a c too; a line has a blank in it, or is the last word.
    words.get(at + 1).filter(|line| line.contains(' ') || at + 2 == words.len()).map(String::as_str)
}

fn through_launcher(name: &str, rest: &[String], depth: u32) -> Option<String> {
    let (_, verb) = LAUNCHERS.iter().find(|(launcher, _)| *launcher == name)?;
    (rest.first()? == verb).then(|| program(&rest[1..], depth - 1)).flatten()
}

/// `python3.11` is `python`.
fn through_interpreter(name: &str, rest: &[String]) -> Option<String> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_ascii_lowercase();
    let (_, with_value) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == bare)?;
    let module = || rest.iter().position(|word| word == "-m").and_then(|at| rest.get(at + 1));
    if bare.starts_with("py")
        && let Some(module) = module()
    {
        return Some(module.clone());
    }
    script(rest, with_value)
}

fn through_shell(rest: &[String], depth: u32) -> Option<String> {
    match line_of_option(rest) {
        Some(line) => of_depth(line, depth - 1),
        None => script(rest, &["-o"]),
    }
}

/// The first word that is no option; none where the program stands in an option, as in `perl -e`.
fn script(words: &[String], with_value: &[&str]) -> Option<String> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if with_value.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            return Some(word.clone());
        } else if !word.starts_with("--") && word.ends_with(['c', 'e']) {
            return None;
        }
    }
    None
}

fn jar(words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| word == "-jar")?;
    words.get(at + 1).cloned()
}

/// `/etc/cron.daily` as a name of its own: the dot is no ending there.
fn folder_name(folder: &str) -> String {
    base_name(folder.trim_end_matches('/')).replace('.', "-")
}

/// What stands behind the last slash.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_prepares_wraps_or_interprets_a_program_is_looked_through() {
        for (line, expected) in [
            ("/usr/local/bin/backup --full", "/usr/local/bin/backup"),
            ("cd /srv/app && ./bin/sync -a", "./bin/sync"),
            ("cd /srv; LANG=C /opt/x.py", "/opt/x.py"),
            ("flock -n /run/lock/x /usr/bin/report", "/usr/bin/report"),
            ("/usr/bin/flock -w 10 /tmp/l -c 'nice -n 19 /opt/clean.sh --all'", "/opt/clean.sh"),
            ("nice -n 10 ionice -c3 tar czf /b.tgz /srv", "tar"),
            ("nice -19 du", "du"),
            ("sh -c 'cd /x && make'", "make"),
            ("bash -lc \"rake jobs:work\"", "rake"),
            ("/bin/bash /opt/run.sh arg", "/opt/run.sh"),
            ("timeout -k 5 1h rsync -a a b", "rsync"),
            ("env -i PATH=/bin A=b python3 -u /opt/job.py", "/opt/job.py"),
            ("python3.11 -m http.server 80", "http.server"),
            ("perl -I lib -w tool.pl", "tool.pl"),
            ("perl -e 'print 1'", "perl"),
            ("php -d memory_limit=1G /var/www/artisan schedule:run", "/var/www/artisan"),
            ("java -Xmx1g -jar /opt/app.jar", "/opt/app.jar"),
            ("sudo -u www-data /usr/bin/php8.2 cron.php", "cron.php"),
            ("su - postgres -c '/usr/bin/vacuumdb --all'", "/usr/bin/vacuumdb"),
            ("su postgres -c vacuum", "vacuum"),
            ("bundle exec rake x", "rake"),
            ("test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "cron-daily"),
            ("cd / && run-parts --report /etc/cron.hourly", "cron-hourly"),
            (
                "[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run/systemd/system ]; then /usr/lib/php/sessionclean; fi",
                "/usr/lib/php/sessionclean",
            ),
            ("command -v debian-sa1 > /dev/null && debian-sa1 1 1", "debian-sa1"),
            ("sleep 30; curl -s http://x/ >/dev/null 2>&1", "curl"),
            ("perl -e 'sleep int(rand(43200))' && certbot -q renew", "certbot"),
            ("cd /srv", "cd"),
            ("(echo a; b) | mail x", "echo"),
        ] {
            assert_eq!(of(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(of("  # nothing"), None);
        assert_eq!(of("A=b"), None);
    }

    #[test]
    fn a_text_made_to_nest_ends() {
        let deep = "nice ".repeat(10_000) + "x";
        assert_eq!(of(&deep).as_deref(), Some("nice"));
    }
}
