use std::collections::BTreeMap;

use super::document::{Field, Refused, Section, Value, all};
use crate::job::Command;

/// `command` or `shell`, not both.
pub fn read_command(section: &mut Section<'_>) -> Field<Command> {
    let command = section.field("command", read_own_argv);
    let shell = section.field("shell", read_shell);
    match (command, shell) {
        (command, Field::Absent) => command,
        (Field::Absent, shell) => shell,
        (Field::Typed(_), Field::Typed(shell)) => {
            section.push(shell.place.problem("command is there too", "keep one of the two"));
            Field::Refused
        }
        _ => Field::Refused,
    }
}

/// A line for `/bin/sh -c`.
pub fn read_shell(value: &Value<'_>) -> Result<Command, Refused> {
    let line = value.c_string()?;
    if line.trim().is_empty() {
        return Err(value.refuse("an empty line", format!("write {} = \"PROGRAM | PROGRAM\"", value.key)));
    }
    Ok(Command::Shell(line))
}

fn read_own_argv(value: &Value<'_>) -> Result<Command, Refused> {
    if value.is_string() {
        let remedy = "write command = [\"PROGRAM\", \"ARGUMENT\"], or shell = \"...\" for a line of /bin/sh";
        return Err(value.refuse("expected a list of strings, not a string", remedy));
    }
    read_argv(value)
}

/// A program and its arguments.
pub fn read_argv(value: &Value<'_>) -> Result<Command, Refused> {
    let argv: Vec<String> = value.list_of(Value::c_string)?.into_iter().map(|argument| argument.value).collect();
    if argv.first().is_none_or(String::is_empty) {
        let remedy = format!("write {} = [\"/PATH/TO/PROGRAM\", \"ARGUMENT\"]", value.key);
        return Err(value.refuse("names no program", remedy));
    }
    Ok(Command::Argv(argv))
}

/// Values are hidden in messages: they often are passwords.
pub fn read_env(value: &Value<'_>) -> Result<BTreeMap<String, String>, Refused> {
    let variables = value.secret().table()?.into_iter().map(|(name, value)| {
        judge_variable(&name).map_err(|(wrong, remedy)| value.refuse(wrong, remedy))?;
        Ok((name, value.c_string()?))
    });
    Ok(all(variables)?.into_iter().collect())
}

fn judge_variable(name: &str) -> Result<(), (&'static str, &'static str)> {
    match name {
        "" => Err(("a variable without a name", "name it")),
        name if name.contains(['=', '\0']) => Err(("a variable's name can't hold '=' or NUL", "rename it")),
        name if name.starts_with("CRONLATCH_") => {
            Err(("names that start with CRONLATCH_ are set by cronlatch", "rename it"))
        }
        _ => Ok(()),
    }
}
