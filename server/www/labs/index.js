// The labs, in their order.

import { lab as waves } from "./waves.js";

export const labs = [waves];
