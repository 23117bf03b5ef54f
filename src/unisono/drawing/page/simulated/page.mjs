// The entry of the page of one algorithm in simulated time.

import { openPage } from "../common/open_page.mjs";
import { openSimulated } from "./simulated.mjs";

await openPage((root, page, [scene], columns) => openSimulated(root, page, scene, columns));
