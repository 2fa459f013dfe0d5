// The labs, in their order.

import { lab as attention } from "./attention.js";
import { lab as fingerprints } from "./fingerprints.js";
import { lab as head } from "./head.js";
import { lab as naive } from "./naive.js";
import { lab as order } from "./order.js";
import { lab as rotation } from "./rotation.js";
import { lab as sum } from "./sum.js";
import { lab as waves } from "./waves.js";

export const labs = [attention, order, naive, waves, sum, fingerprints, rotation, head];
