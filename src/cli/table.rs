//! Rows in columns, as wide as they need to be.

/// Lines of `rows` under `head`, without trailing spaces.
pub(super) fn lines<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let head = head.map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    all()
        .map(|row| {
            let cells = row.iter().zip(&widths);
            let line: String = cells.map(|(cell, width)| format!("{cell:<width$}  ")).collect();
            line.trim_end().to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_line_up() {
        let rows = [["1".to_owned(), "long name".to_owned()], ["22".to_owned(), String::new()]];
        assert_eq!(super::lines(["ID", "NAME"], &rows), ["ID  NAME", "1   long name", "22"]);
    }
}
