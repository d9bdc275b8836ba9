// The query builder of the Ask page: it writes SQL into the editor from a table, aggregates, a filter and a key.

const builder = document.querySelector("[data-builder]");
const area = document.getElementById("sql");
const tables = JSON.parse(builder.dataset.builder);
const field = (name) => builder.querySelector(`[name="build-${name}"]`);
const NUMBERS = ["integer", "real"];

function quote(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function literal(column, text) {
  return NUMBERS.includes(column.type) || column.type === "boolean" ? text.trim() : `'${text.replaceAll("'", "''")}'`;
}

function fill(select, choices) {
  const before = select.value;
  select.replaceChildren(
    ...choices.map(([value, label]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = label;
      return option;
    }),
  );
  if (choices.some(([value]) => value === before)) select.value = before;
}

function findTable() {
  return tables.find((table) => table.name === field("table").value) ?? tables[0];
}

function fillColumns() {
  const columns = findTable().columns.filter((column) => column.type !== "id");
  const numbers = columns.filter((column) => NUMBERS.includes(column.type));
  const what = [["count", "the number of rows"]];
  for (const column of numbers) what.push([`AVG ${column.name}`, `the average ${column.name}`], [`SUM ${column.name}`, `the sum of ${column.name}`]);
  fill(field("what"), what);
  fill(field("key"), [["", "nothing"], ...columns.filter((column) => ["category", "boolean"].includes(column.type)).map((column) => [column.name, column.name])]);
  fill(field("where"), [["", "all rows"], ...columns.map((column) => [column.name, column.name])]);
}

function compose() {
  const table = findTable();
  const [how, ...rest] = field("what").value.split(" ");
  const column = rest.join(" ");
  const key = field("key").value;
  const selected = [
    ...(key ? [quote(key)] : []),
    "COUNT(*) AS n",
    ...(how === "count" ? [] : [`${how}(${quote(column)}) AS ${how === "AVG" ? "mean" : "total"}`]),
  ];
  const lines = [`SELECT ${selected.join(", ")}`, `FROM ${quote(table.name)}`];
  const filter = table.columns.find((one) => one.name === field("where").value);
  if (filter && field("value").value.trim()) lines.push(`WHERE ${quote(filter.name)} ${field("compare").value} ${literal(filter, field("value").value)}`);
  if (key) lines.push(`GROUP BY ${quote(key)}`);
  return lines.join("\n");
}

function write() {
  area.value = compose();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

// Show the first question, if the builder can write it: what is chosen and what is written then agree.
function showFirst() {
  const wanted = area.value.replaceAll("\r\n", "\n").trim();
  for (const table of field("table").options) {
    field("table").value = table.value;
    fillColumns();
    for (const what of field("what").options) {
      for (const key of field("key").options) {
        field("what").value = what.value;
        field("key").value = key.value;
        if (compose() === wanted) return;
      }
    }
  }
  for (const name of ["table", "what", "key"]) field(name).selectedIndex = 0;
  fillColumns();
}

fill(field("table"), tables.map((table) => [table.name, table.name]));
fillColumns();
showFirst();
builder.hidden = false;
builder.addEventListener("input", (event) => {
  if (event.target === field("table")) fillColumns();
  if (event.target === field("where")) field("value").disabled = field("compare").disabled = !field("where").value;
  write();
});
field("value").disabled = field("compare").disabled = true;
