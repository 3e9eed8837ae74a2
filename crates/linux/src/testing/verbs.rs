//! Help texts of programs.

/// Panics unless the command is well formed and the help of each verb has an example of it.
pub fn has_examples(command: &clap::Command) {
    command.clone().debug_assert();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let example = format!("{} {}", command.get_name(), verb.get_name());
        assert!(help.contains(&example), "no example: {example}");
    }
}
