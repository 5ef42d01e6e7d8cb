// Small files of every kind that Files can show, made here so that no spec depends on a binary in the repository.

import { crc32, deflateSync } from "node:zlib";

/** A picture in one colour. */
export function png(width, height, [red, green, blue]) {
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const data = deflateSync(Buffer.concat(Array(height).fill(row)));
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", data),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(checksum(body));
  return Buffer.concat([length, body, sum]);
}

/** The one of PNG; `zlib.crc32` came after the oldest Node.js that runs these specs. */
function checksum(bytes) {
  if (crc32) return crc32(bytes);
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

/** A tone of so many seconds: 8 kHz, 8 bits, one channel. */
export function wav(seconds) {
  const rate = 8000;
  const samples = Buffer.from(Array.from({ length: rate * seconds }, (_, at) => 128 + Math.round(100 * Math.sin(at / 4))));
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** So many pages, each all over in one colour. */
export function pdf(pages, [red, green, blue]) {
  const paint = `${red / 255} ${green / 255} ${blue / 255} rg 0 0 200 100 re f`;
  const kids = Array.from({ length: pages }, (_, index) => `${4 + index} 0 R`).join(" ");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`,
    `<< /Length ${paint.length} >>\nstream\n${paint}\nendstream`,
    ...Array(pages).fill("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Contents 3 0 R /Resources << >> >>"),
  ];
  let text = "%PDF-1.4\n";
  const places = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const table = text.length;
  const lines = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${lines}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
  return Buffer.from(text, "latin1");
}

/** A film of a coloured canvas, filmed by the browser itself. */
export async function webm(page) {
  const base64 = await page.evaluate(async () => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 48 });
    const pen = canvas.getContext("2d");
    const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm;codecs=vp8" });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    const ended = new Promise((done) => (recorder.onstop = done));
    recorder.start();
    for (let frame = 0; frame < 12; frame += 1) {
      pen.fillStyle = frame % 2 ? "teal" : "orange";
      pen.fillRect(0, 0, 64, 48);
      await new Promise((done) => setTimeout(done, 50));
    }
    recorder.stop();
    await ended;
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
  });
  return Buffer.from(base64, "base64");
}
