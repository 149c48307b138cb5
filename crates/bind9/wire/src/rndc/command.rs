//! What is asked of a server → the command line that says so. Pure.

use crate::message::DomainName;

/// What happens to the files of a zone that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneFiles {
    /// They stay, as another zone is about to be made of them.
    Keep,
    /// They go with the zone (`-clean`).
    Remove,
}

/// What happens to a zone's journal when the zone is written to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalFile {
    /// It stays.
    Keep,
    /// It goes (`-clean`): nobody gets changes from before any more.
    Remove,
}

/// A command of the control channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RndcCommand {
    /// How the server is.
    Status,
    /// A new zone, as its statement in braces: `{ type primary; file "z.db"; }`.
    AddZone(DomainName, String),
    /// Another configuration for a zone that is there; its type stays what it is until a restart (9.18).
    ModifyZone(DomainName, String),
    /// A zone goes.
    DeleteZone(DomainName, ZoneFiles),
    /// A zone's configuration as a statement.
    ShowZone(DomainName),
    /// How a zone is.
    ZoneStatus(DomainName),
    /// The configuration is read again; zones that are the same are left alone.
    Reconfigure,
    /// A secondary gets all of a zone, whatever its serial is.
    Retransfer(DomainName),
    /// Secondaries are told of a zone again.
    Notify(DomainName),
    /// A secondary looks at its primaries' serial now.
    Refresh(DomainName),
    /// A zone is written to its file.
    Sync(DomainName, JournalFile),
    /// A zone is written to its file and takes no updates.
    Freeze(DomainName),
    /// A frozen zone is read from its file and takes updates.
    Thaw(DomainName),
    /// How a zone's keys are.
    DnssecStatus(DomainName),
    /// A key is to be replaced now.
    DnssecRollover(DomainName, u16),
    /// Which keys the server knows.
    TsigList,
}

impl RndcCommand {
    /// The command line. It has no line break and no NUL, whatever configuration it was made of.
    pub(crate) fn line(&self) -> String {
        let zone = |verb: &str, name: &DomainName| format!("{verb} {}", bare(name));
        match self {
            Self::Status => "status".into(),
            Self::AddZone(name, configuration) => format!("addzone {} {}", bare(name), one_line(configuration)),
            Self::ModifyZone(name, configuration) => format!("modzone {} {}", bare(name), one_line(configuration)),
            Self::DeleteZone(name, ZoneFiles::Keep) => zone("delzone", name),
            Self::DeleteZone(name, ZoneFiles::Remove) => zone("delzone -clean", name),
            Self::ShowZone(name) => zone("showzone", name),
            Self::ZoneStatus(name) => zone("zonestatus", name),
            Self::Reconfigure => "reconfig".into(),
            Self::Retransfer(name) => zone("retransfer", name),
            Self::Notify(name) => zone("notify", name),
            Self::Refresh(name) => zone("refresh", name),
            Self::Sync(name, JournalFile::Keep) => zone("sync", name),
            Self::Sync(name, JournalFile::Remove) => zone("sync -clean", name),
            Self::Freeze(name) => zone("freeze", name),
            Self::Thaw(name) => zone("thaw", name),
            Self::DnssecStatus(name) => zone("dnssec -status", name),
            Self::DnssecRollover(name, tag) => format!("dnssec -rollover -key {tag} {}", bare(name)),
            Self::TsigList => "tsig-list".into(),
        }
    }

    /// The first word, for messages and metrics.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::AddZone(..) => "addzone",
            Self::ModifyZone(..) => "modzone",
            Self::DeleteZone(..) => "delzone",
            Self::ShowZone(_) => "showzone",
            Self::ZoneStatus(_) => "zonestatus",
            Self::Reconfigure => "reconfig",
            Self::Retransfer(_) => "retransfer",
            Self::Notify(_) => "notify",
            Self::Refresh(_) => "refresh",
            Self::Sync(..) => "sync",
            Self::Freeze(_) => "freeze",
            Self::Thaw(_) => "thaw",
            Self::DnssecStatus(_) | Self::DnssecRollover(..) => "dnssec",
            Self::TsigList => "tsig-list",
        }
    }

    /// The zone it is about.
    pub fn zone(&self) -> Option<&DomainName> {
        match self {
            Self::Status | Self::Reconfigure | Self::TsigList => None,
            Self::AddZone(name, _)
            | Self::ModifyZone(name, _)
            | Self::DeleteZone(name, _)
            | Self::ShowZone(name)
            | Self::ZoneStatus(name)
            | Self::Retransfer(name)
            | Self::Notify(name)
            | Self::Refresh(name)
            | Self::Sync(name, _)
            | Self::Freeze(name)
            | Self::Thaw(name)
            | Self::DnssecStatus(name)
            | Self::DnssecRollover(name, _) => Some(name),
        }
    }
}

/// Without the dot at its end, as named's own messages have it; a name has no blanks, for they are escaped.
fn bare(name: &DomainName) -> String {
    let text = name.to_string();
    if text == "." { text } else { text.strip_suffix('.').unwrap_or(&text).to_owned() }
}

/// A statement ends in a semicolon, without which named says no more than "failure".
fn one_line(configuration: &str) -> String {
    let line = configuration
        .split(['\n', '\r', '\0'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if line.ends_with(';') { line } else { line + ";" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_line() {
        let zone = DomainName::parse("Example.com").unwrap();
        let configuration = "{\n  type primary;\n  file \"a b\";\r\n}\0".to_owned();

        assert_eq!(
            RndcCommand::AddZone(zone.clone(), configuration).line(),
            r#"addzone Example.com { type primary; file "a b"; };"#
        );
        assert_eq!(RndcCommand::DeleteZone(zone.clone(), ZoneFiles::Remove).line(), "delzone -clean Example.com");
        assert_eq!(RndcCommand::DnssecRollover(zone, 7).line(), "dnssec -rollover -key 7 Example.com");
        let odd = DomainName::parse(r"a\032b.example").unwrap();
        assert_eq!(RndcCommand::Notify(odd).line(), r"notify a\032b.example");
    }
}
