// Many operations quickly, over the socket that commands at the command line use: the desktop's own routes take no more
// calls than a person makes.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { join } from "node:path";

/** So many requests may be under way: they share their commits. */
const AT_ONCE = 100;

function frame(bytes) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** One request and its last answer. */
function ask(socket, request) {
  const envelope = { version: 1, command: randomUUID(), op: randomUUID(), request };
  return new Promise((done, failed) => {
    const stream = connect(socket);
    const heard = [];
    stream.on("data", (bytes) => heard.push(bytes));
    stream.on("error", failed);
    stream.on("end", () => {
      let bytes = Buffer.concat(heard);
      let answer;
      while (bytes.length >= 4) {
        const length = bytes.readUInt32LE();
        answer = JSON.parse(bytes.subarray(4, 4 + length));
        bytes = bytes.subarray(4 + length);
      }
      stream.destroy();
      if (answer?.failure || !answer) failed(new Error(JSON.stringify(answer ?? null)));
      else done(answer);
    });
    stream.write(Buffer.concat([frame(Buffer.from(JSON.stringify(envelope))), frame(Buffer.alloc(0))]));
  });
}

/** Settings, numbered from one in the order they are asked for; those of one batch may change places. */
export async function settings(computer, count) {
  const socket = join(computer.data, "users", "owner", ".choir", "choir.sock");
  let next = 1;
  const work = async () => {
    while (next <= count) {
      const number = next;
      next += 1;
      await ask(socket, { gesture: { set_setting: { key: `seed.${number % 50}`, value: number } } });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}
