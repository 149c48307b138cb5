//! A case: a name, a group, and the steps that are taken on either server.

/// Steps that must be answered alike by both servers.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub group: String,
    pub name: String,
    /// Part of every name the case makes up, so that cases do not meet; the same on both servers.
    pub id: String,
    /// The id in the group of the custom resource: the case's own unless it shares another's definition.
    pub definition: String,
    pub steps: Vec<CaseStep>,
}

impl Case {
    /// Group and name, as filters and known differences give it.
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.group, self.name)
    }
}

/// One step, still with the variables `$ns`, `$id`, `$cm` … and those saved by earlier steps.
#[derive(Clone, Debug)]
pub(crate) struct CaseStep {
    /// As written in the script, to show where answers differ.
    pub line: String,
    pub action: CaseAction,
    pub path: String,
    /// `Name: value`; an empty value takes the client's own header away.
    pub headers: Vec<(String, String)>,
    pub body: Text,
    /// Variable and where in the answer its value is.
    pub saves: Vec<(String, String)>,
    pub expects: Expects,
}

/// What the real server must make of a step, so that two servers that fail alike are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expects {
    /// Nothing in particular: an answer.
    Answer,
    /// It is done: the object is made, the effect comes.
    Success,
    /// `refused`: the object is not made.
    Refusal,
    /// `never`: the effect does not come.
    Never,
    /// What a random step comes to is not known.
    Whatever,
}

/// A step's body as written.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    None,
    /// YAML that is sent as JSON, with apiVersion, kind and name added where the path tells them.
    Filled(String),
    /// YAML that is sent as JSON and nothing added.
    Bare(String),
    /// Sent as it is.
    Raw(String),
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum CaseAction {
    Send(CaseVerb),
    /// Defines the case's own custom resource and waits until it is served.
    Define(Vec<String>),
    /// Asks again until the condition holds; the answer itself is not compared.
    Wait(Until),
    Watch(Enough),
}

/// A request's method and content type under one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseVerb {
    Get,
    Head,
    Options,
    Post,
    /// POST to the collection with the name that the path ends in.
    Create,
    Put,
    Delete,
    Apply,
    Merge,
    Json,
    Strategic,
}

impl CaseVerb {
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "POST" => Self::Post,
            "CREATE" => Self::Create,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "APPLY" => Self::Apply,
            "MERGE" => Self::Merge,
            "JSON" => Self::Json,
            "STRATEGIC" => Self::Strategic,
            _ => return None,
        })
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post | Self::Create => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Apply | Self::Merge | Self::Json | Self::Strategic => "PATCH",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Apply => "application/apply-patch+yaml",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Get | Self::Head | Self::Options | Self::Post | Self::Create | Self::Put | Self::Delete => {
                "application/json"
            }
        }
    }

    /// Whether the body is a whole object, whose kind and name can be told from the path.
    pub(crate) fn sends_object(self) -> bool {
        matches!(self, Self::Post | Self::Create | Self::Put | Self::Apply)
    }
}

/// When a wait is over.
#[derive(Clone, Debug)]
pub(crate) enum Until {
    Gone,
    Served,
    /// The field is there.
    Present(String),
    /// The field is not there, or the list at it is empty.
    Absent(String),
    /// The field has this value.
    Equals(String, String),
}

/// When a watch has been read far enough.
#[derive(Clone, Debug)]
pub(crate) enum Enough {
    Events(usize),
    Closed,
    Bookmark,
    /// The last event is about the object of this name.
    Named(String),
}
