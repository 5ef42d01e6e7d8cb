// What the viewer says, in one place.

export const WORDS = {
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  fit: "Fit to the window",
  rotate: "Rotate",
  notReachable: "Couldn't read the file. Check the connection and open it again.",
  notShown: "This file cannot be shown here. Download it to open it with another program.",
  notJson: (why: string) => `This is not valid JSON (${why}). Open it in the editor to see the text.`,
  notNotebook: "This is not a Jupyter notebook. Open it in the editor to see the text.",
  notText: "This file is not text.",
  empty: "This file is empty.",
  tooLarge: (limit: string) => `Only files up to ${limit} are shown. Download it to see all of it.`,
  reading: (rows: number) => `Reading… ${rows.toLocaleString()} rows`,
  table: (rows: number, columns: number) =>
    `${rows.toLocaleString()} ${rows === 1 ? "row" : "rows"} · ${columns.toLocaleString()} ${columns === 1 ? "column" : "columns"}`,
  uneven: (rows: number) => `${rows.toLocaleString()} rows have another number of columns`,
  column: (index: number) => `Column ${index + 1}`,
  items: (count: number) => `${count.toLocaleString()} ${count === 1 ? "item" : "items"}`,
  more: (count: number) => `${count.toLocaleString()} more`,
  remoteImage: (address: string) => `Image from ${address} (not loaded)`,
};
