// Tables of results: a head sorts by a click or the Enter key; long tables can be filtered.
// Without this script they stay as they are.
(() => {
  const FEW = 3, LONG = 15;

  // A column whose cells all begin with a number is ordered by it: "< 1e-15", "0.12 to 0.34", "1,040", "–" for none.
  function orderByNumbers(table) {
    const rows = [...table.tBodies[0].rows];
    for (let column = 0; column < rows[0].cells.length; column++) {
      const texts = rows.map(row => row.cells[column].textContent.trim());
      const numbers = texts.map(text => /^[<>≤≥]?\s*([-−]?[\d,]*\.?\d+(e[-+]?\d+)?)(?![\w-])/i.exec(text));
      if (!texts.every((text, i) => numbers[i] || text.startsWith("–") || text === "") || !numbers.some(Boolean)) continue;
      rows.forEach((row, i) => {
        row.cells[column].dataset.order = numbers[i] ? numbers[i][1].replaceAll(",", "").replace("−", "-") : "";
      });
    }
  }

  window.sortable = table => {
    const rows = table.tBodies[0].rows.length;
    if (rows < FEW) return;
    orderByNumbers(table);
    for (const head of [...table.tHead.rows].slice(0, -1).flatMap(row => [...row.cells]))
      head.dataset.dtOrder = "disable"; // a head of several columns sorts nothing
    new DataTable(table, {
      paging: false,
      info: false,
      order: [],
      autoWidth: false,
      searching: rows >= LONG,
      language: { search: "Filter rows", zeroRecords: "No row matches." },
      layout: { topStart: rows >= LONG ? "search" : null, topEnd: null, bottomStart: null, bottomEnd: null },
    });
  };
  document.querySelectorAll(".table-scroll > table").forEach(sortable);
})();
