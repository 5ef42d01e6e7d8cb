import assert from "node:assert/strict";

import { pdf, png, wav, webm } from "../fixtures.mjs";
import { open, picture, put, putBytes, show, signIn, story, until } from "../lib.mjs";

const TEAL = [0, 128, 128];
const ROWS = 100_000;
const MARKDOWN = `# Report

| name | count |
|:-----|------:|
| ants | 12 |

- [x] done
- [ ] open
  - nested

![plot](img/plot.png) ![away](https://example.org/spy.png)

Euler: $e^{i\\pi} + 1 = 0$

\`\`\`python
def f(x): return "text"
\`\`\`

~~old~~ [the data](data.csv) [bad](javascript:alert(1))

<details><summary>More</summary>inside</details>
<script>globalThis.ran = true</script><img src="x" onerror="globalThis.ran = true"><iframe src="/"></iframe>
<b style="position: fixed" onclick="globalThis.ran = true">bold</b>
`;
const NOTEBOOK = {
  nbformat: 4,
  metadata: { language_info: { name: "python" } },
  cells: [
    { cell_type: "markdown", source: ["# Lab\n", "Some *words*."] },
    {
      cell_type: "code",
      execution_count: 3,
      source: "print(1 + 1)",
      outputs: [
        { output_type: "stream", text: ["2\n"] },
        { output_type: "error", traceback: ["\u001b[31mOops\u001b[0m"] },
        { output_type: "display_data", data: { "image/png": png(8, 8, TEAL).toString("base64"), "text/plain": "a plot" } },
      ],
    },
  ],
};

story("the viewer", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "notes/report.md", MARKDOWN);
  await putBytes(page, "notes/img/plot.png", png(40, 20, TEAL));
  await put(page, "notes/data.csv", "a,b\n1,2\n");
  await put(page, "big.csv", `id,name,when\n${Array.from({ length: ROWS }, (_, i) => `${i},"row, ${i}",x`).join("\n")}\n`);
  await put(page, "tree.json", JSON.stringify({ title: "T", list: Array.from({ length: 500 }, (_, i) => ({ n: i })) }));
  await put(page, "broken.json", "{ not json");
  await put(page, "lab.ipynb", JSON.stringify(NOTEBOOK));
  await putBytes(page, "one.png", png(400, 200, TEAL));
  await putBytes(page, "two.png", png(30, 60, TEAL));
  await putBytes(page, "pages.pdf", pdf(3, TEAL));
  await putBytes(page, "tone.wav", wav(2));
  await putBytes(page, "film.webm", await webm(page));
  await putBytes(page, "things.7z", "7z and so on");
  const files = await open(page, "files");

  const viewer = (name) => page.locator(`.win[data-app="viewer"][aria-label="${name}"]`);
  async function view(name) {
    await show(page, "files");
    await files.locator(`[data-path="${name}"]`).dblclick();
    const window = viewer(name.split("/").at(-1));
    await window.locator(".view[aria-busy=false]").waitFor();
    return window;
  }
  /** Opens a file that the editor would open. */
  async function look(name) {
    await show(page, "files");
    await files.locator(`[data-path="${name}"]`).click({ button: "right" });
    await page.getByRole("menuitem", { name: "View", exact: true }).click();
    const window = viewer(name.split("/").at(-1));
    await window.locator(".view[aria-busy=false]").waitFor();
    return window;
  }
  const close = (window) => window.getByRole("button", { name: "Close", exact: true }).click();

  await step("a picture is fitted, zoomed and rotated, and the next one follows in the same window", async () => {
    const window = await view("one.png");
    const image = window.locator("img");
    assert.equal(await window.locator("output").innerText(), "100 %");
    await window.getByRole("button", { name: "Zoom in" }).click();
    await until(() => image.evaluate((element) => element.style.width), "500px");
    await window.locator(".image-stage").press("0");
    await until(() => image.evaluate((element) => element.style.width), "400px");
    await window.getByRole("button", { name: "Rotate" }).click();
    const box = await image.boundingBox();
    assert.deepEqual([Math.round(box.width), Math.round(box.height)], [200, 400]);
    await picture(page, "viewer-image");
    await window.getByText("1 of 2").waitFor();
    await window.getByRole("button", { name: "Next picture" }).click();
    const next = viewer("two.png");
    await until(() => next.locator("img").evaluate((element) => element.naturalHeight), 60);
    assert.equal(await next.getByRole("button", { name: "Next picture" }).isDisabled(), true);
    await close(next);
  });

  await step("a drawing is shown, and a script in it does not run", async () => {
    await put(page, "draw.svg", '<svg xmlns="http://www.w3.org/2000/svg" width="70" height="30"><script>globalThis.ran = true</script></svg>');
    const window = await view("draw.svg");
    await until(() => window.locator("img").evaluate((element) => element.naturalWidth), 70);
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    await close(window);
  });

  await step("a PDF, a sound and a film have windows of their own; the film is asked for by ranges", async () => {
    const document = await view("pages.pdf");
    await until(() => document.locator(".pdf-page").count(), 3);
    await close(document);
    const sound = await view("tone.wav");
    await until(() => sound.locator("audio").evaluate((element) => element.duration), 2);
    await close(sound);
    const asked = page.waitForRequest((request) => request.url().includes("film.webm") && request.headers()["range"] !== undefined);
    const film = await view("film.webm");
    await asked;
    await until(() => film.locator("video").evaluate((element) => element.videoWidth), 64);
    await close(film);
  });

  await step("a hundred thousand rows are read, scrolled and sorted, with few of them in the page", async () => {
    const window = await view("big.csv");
    await window.getByText("100,000 rows · 3 columns").waitFor();
    assert.deepEqual(await window.getByRole("columnheader").allInnerTexts(), ["id", "name", "when"]);
    assert.deepEqual(await window.locator(".csv-row").first().locator("> div").allInnerTexts(), ["0", "row, 0", "x"]);
    await window.locator(".csv-rows").evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await window.getByText("row, 99999", { exact: true }).waitFor();
    assert.ok((await window.locator(".csv-row").count()) < 100);
    await picture(page, "viewer-table");
    await window.getByRole("button", { name: "id" }).click();
    await window.getByRole("button", { name: "id" }).click();
    await window.locator(".csv-rows").evaluate((element) => element.scrollTo(0, 0));
    await until(() => window.locator(".csv-row").first().locator("> div").first().innerText(), "99999");
    await close(window);
  });

  await step("JSON is a tree that is filled as it is opened; text that is no JSON is said so", async () => {
    const window = await look("tree.json");
    await window.getByText('"T"').waitFor();
    assert.equal(await window.locator(".json-leaf").count(), 1);
    await window.getByText("500 items").click();
    await window.getByRole("button", { name: "300 more" }).click();
    await window.getByRole("button", { name: "100 more" }).waitFor();
    await picture(page, "viewer-json");
    await close(window);
    const broken = await look("broken.json");
    await broken.getByText("This is not valid JSON").waitFor();
    await close(broken);
  });

  await step("Markdown is rendered as on GitHub, with pictures of the workspace, and nothing in it runs or reaches out", async () => {
    const remote = [];
    page.on("request", (request) => request.url().includes("example.org") && remote.push(request.url()));
    await files.locator('[data-path="notes"]').dblclick();
    const window = await look("notes/report.md");
    await window.getByRole("heading", { name: "Report" }).waitFor();
    assert.equal(await window.locator("td").nth(1).evaluate((cell) => getComputedStyle(cell).textAlign), "right");
    assert.deepEqual(await window.locator("li.check-item input").evaluateAll((boxes) => boxes.map((box) => box.checked)), [true, false]);
    assert.equal(await window.locator("li li").innerText(), "nested");
    await until(() => window.getByAltText("plot").evaluate((image) => image.naturalWidth), 40);
    assert.equal(await window.locator("math").count(), 1);
    await window.locator(".tok-keyword", { hasText: "def" }).waitFor();
    assert.equal(await window.locator("del").innerText(), "old");
    assert.equal(await window.locator("iframe, script, [onclick], [style*=fixed]").count(), 0);
    assert.equal(await window.getByText("bad", { exact: true }).getAttribute("href"), null);
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    assert.deepEqual(remote, []);
    await picture(page, "viewer-markdown");
    await window.getByRole("link", { name: "the data" }).click();
    await viewer("data.csv").getByText("1 row · 2 columns").waitFor();
    await close(viewer("data.csv"));
  });

  await step("the viewer follows its file, and leads to the editor", async () => {
    const window = viewer("report.md");
    await put(page, "notes/report.md", "# Written anew\n");
    await window.getByRole("heading", { name: "Written anew" }).waitFor();
    await window.getByRole("button", { name: "Edit" }).click();
    await page.locator('.win[data-app="editor"][aria-label="report.md"] .cm-content').waitFor();
    await close(page.locator('.win[data-app="editor"]'));
    await close(window);
    await show(page, "files");
    await files.getByRole("button", { name: "Back" }).click();
  });

  await step("a notebook shows its cells, their results and their errors", async () => {
    const window = await view("lab.ipynb");
    await window.getByRole("heading", { name: "Lab" }).waitFor();
    assert.deepEqual(await window.locator("pre.output").allInnerTexts(), ["2\n", "Oops"]);
    await until(() => window.getByAltText("a plot").evaluate((image) => image.naturalWidth), 8);
    await picture(page, "viewer-notebook");
    await close(window);
  });

  await step("a file that no view knows says so", async () => {
    await show(page, "files");
    await files.locator('[data-path="things.7z"]').dblclick();
    await viewer("things.7z").getByText("There is no viewer for .7z files").waitFor();
  });

  await step("the window and its file survive a reload", async () => {
    await view("two.png");
    await page.reload();
    await until(() => viewer("two.png").locator("img").evaluate((element) => element.naturalHeight), 60);
  });
});
