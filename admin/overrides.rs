//! `/overrides`: other words for tools than their servers'.

use gateway::Gateway;
use gateway::manage::{OverrideFields, OverrideInfo};
use serde::Serialize;

use crate::answer::Answer;
use crate::body::Fields;
use crate::error::Error;
use crate::routes::Input;
use crate::tools::Tool;

#[derive(Serialize)]
struct Override {
    upstream: String,
    tool: String,
    title: Option<String>,
    description: Option<String>,
}

pub(crate) async fn list(gateway: &Gateway) -> Result<Answer, Error> {
    let of = |OverrideInfo { upstream, words }: OverrideInfo| Override {
        upstream,
        tool: words.tool,
        title: words.title,
        description: words.description,
    };
    let all: Vec<_> = gateway.overrides().await?.into_iter().map(of).collect();
    Ok(Answer::json(&all))
}

pub(crate) async fn set(gateway: &Gateway, input: Input) -> Result<Answer, Error> {
    let mut body = Fields::parse(&input.body, &["upstream", "tool", "title", "description"])?;
    let fields = OverrideFields {
        upstream: body.text("upstream")?,
        tool: body.text("tool")?,
        title: body.text("title")?,
        description: body.text("description")?,
    };
    let info = gateway.set_override(fields).await?;
    Ok(Answer::json(&Tool::of(&info)))
}
